/* SPDX-License-Identifier: MIT */
/*
 * Parking as users meet it: several processes, shares, what cannot be parked, daemons that are killed, a job
 * that is cancelled while it is parked, and jobs that are parked for others, on request or by mgpud itself.
 * Each job compares its memory at its end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS       40000
#define ASK_MS       20000
#define TEST_MS      120000
#define AUTO_MS      60000
#define PART_PERCENT 12U
#define HALF_GIB_MIB 512
#define PROCESSES    2
#define NUMBER       32
#define HOLD_S       "600"

static const char *const list[] = { "list", NULL };

/* False after result_skip(). */
static bool can_park(struct kit *kit, struct result *result)
{
    if (kit->no_park != NULL)
        result_skip(result, "%s", kit->no_park);
    return kit->no_park == NULL && probe_has_verb(kit, "park", NULL, result);
}

/* A job that holds an eighth of the free memory until it is parked or let go. -1 after result_fail(). */
static int64_t start_holder(struct kit *kit, const char *const *options, struct result *result)
{
    char memory[PROBE_SIZE];
    probe_size(kit, PART_PERCENT, HALF_GIB_MIB, memory);
    const char *const hold[] = { "hold", "-m", memory, "-s", HOLD_S, "--until-continued", NULL };
    return parking_start(kit, options, hold, 1, PARKING_MS, result);
}

static bool is_parked(struct kit *kit, int64_t job)
{
    json_t *record = parking_await(kit, job, "parked", ASK_MS);
    bool found = text_equal(record_word(record, "park"), "parked");
    json_decref(record);
    return found;
}

/* --- what is parked --- */

static void check_two(struct kit *kit, struct result *result)
{
    char memory[PROBE_SIZE];
    probe_size(kit, PART_PERCENT, HALF_GIB_MIB, memory);
    const char *const hold[] = { "hold", "-m", memory, "-s", HOLD_S, "--until-continued", "--processes", "2",
        NULL };
    int64_t job =
        !can_park(kit, result) ? -1 : parking_start(kit, parking_gpu, hold, PROCESSES, PARKING_MS, result);
    if (job < 0)
        return;
    bool is_back = parking_cycle(kit, job, PARKING_MS, result);
    struct result end = { 0 };
    parking_judge(kit, job, "", &end);
    result_fact(result, "end", end.facts != NULL ? end.facts : json_null());
    if (end.outcome == OUTCOME_FAILED)
        result_fail(result, "%s", end.text);
    else if (is_back)
        result_pass(result, "two processes of one job with %s each parked and resumed, and right", memory);
}

/* A share under MPS may not be saved by the driver: the job must then run on. */
static void check_mps_share(struct kit *kit, struct result *result)
{
    char share[PROBE_SIZE];
    struct error err = { 0 };
    probe_size(kit, PART_PERCENT * 2, HALF_GIB_MIB * 2, share);
    const char *const options[] = { "-G", KIT_GPU, "-m", share, "--share", "mps", NULL };
    const char *const dry[] = { "submit", "-G", KIT_GPU, "-m", share, "--share", "mps", "--dry-run", "true",
        NULL };
    if (!can_park(kit, result))
        return;
    if (instance_ask(kit, dry, ASK_MS, NULL, &err) != 0) {
        result_skip(result, "this mgpu cannot share by MPS here: %s", err.message);
        return;
    }
    int64_t job = start_holder(kit, options, result);
    if (job < 0)
        return;
    parking_try(kit, job, "its memory was correct", result);
}

/* --- what is not --- */

/* The answer to `mgpu park`, which must be a refusal with its reason. False after result_fail(). */
static bool is_refused(struct kit *kit, int64_t job, const char *name, struct result *result)
{
    char number[NUMBER];
    (void)snprintf(number, sizeof(number), "%" PRId64, job);
    const char *const park[] = { "park", number, NULL };
    struct error err = { 0 };
    if (instance_ask(kit, park, ASK_MS, NULL, &err) == 0) {
        result_fail(result, "a job that must not be parked was (%s)", name);
        return false;
    }
    result_fact(result, name, json_string(err.message));
    return true;
}

/* A job that forbids it, one that has ended, and one that waits in the queue. */
static void check_refusals(struct kit *kit, struct result *result)
{
    static const char *const never[] = { "-G", KIT_GPU, "--no-park", NULL }, *const held[] = { "-G", KIT_GPU,
        "--hold", NULL };
    if (!probe_has_verb(kit, "park", NULL, result))
        return;
    int64_t ended = probe_submit(kit, parking_gpu, list, result);
    json_t *record = ended < 0 ? NULL : probe_wait(kit, ended, JOB_MS, result);
    int64_t queued = record == NULL ? -1 : probe_submit(kit, held, list, result);
    int64_t running = queued < 0 ? -1 : start_holder(kit, never, result);
    json_decref(record);
    if (running < 0)
        return;
    bool is_right = is_refused(kit, ended, "ended", result) && is_refused(kit, queued, "queued", result) &&
                    is_refused(kit, running, "forbidden", result);
    probe_cancel(kit, queued);
    parking_judge(kit, running, "three jobs that cannot be parked are refused with the reason", result);
    if (!is_right)
        result->outcome = OUTCOME_FAILED;
}

/* --- while it is parked --- */

static void check_crash(struct kit *kit, struct result *result)
{
    struct error err = { 0 };
    int64_t job = !can_park(kit, result) ? -1 : start_holder(kit, parking_gpu, result);
    if (job < 0)
        return;
    bool is_back = parking_park(kit, job, PARKING_MS, result);
    if (is_back && instance_crash(kit, &err) < 0) {
        result_fail(result, "mgpud does not start again: %s", err.message);
        return;
    }
    if (is_back && !is_parked(kit, job)) {
        result_fail(result, "it is no longer parked after all daemons were killed");
        is_back = false;
    }
    is_back = is_back && parking_return(kit, job, PARKING_MS, result);
    if (is_back)
        parking_judge(kit, job, "it stayed parked while all daemons were killed and started again", result);
    else
        probe_cancel(kit, job);
}

static void check_cancel(struct kit *kit, struct result *result)
{
    int64_t job = !can_park(kit, result) ? -1 : start_holder(kit, parking_gpu, result);
    bool was_parked = job >= 0 && parking_park(kit, job, PARKING_MS, result);
    if (job >= 0)
        probe_cancel(kit, job);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return;
    int64_t free_ms = probe_await_free(kit, result);
    result_fact(result, "free_ms", json_integer(free_ms));
    if (!text_equal(record_word(record, "state"), "cancelled"))
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else if (free_ms < 0)
        result_fail(result, "the GPU is not free after a parked job was cancelled");
    else if (was_parked)
        result_pass(result, "a parked job was cancelled; the GPU was free %lld ms after", (long long)free_ms);
    json_decref(record);
}

/* --- parked for another job --- */

/* Waits until another job has run on the GPU of `job`, and `job` has it again. False after result_fail(). */
static bool give_way(struct kit *kit, int64_t job, const char *const *options, struct result *result)
{
    int64_t begin_ms = clock_boot_ms();
    int64_t guest = probe_submit(kit, options, list, result);
    json_t *record = guest < 0 ? NULL : probe_wait(kit, guest, AUTO_MS, result);
    if (record == NULL)
        return false;
    result_fact(result, "guest_ms", json_integer(clock_boot_ms() - begin_ms));
    bool is_done = text_equal(record_word(record, "state"), "done");
    if (!is_done)
        result_fail(result, "the other job ended as %s", record_word(record, "state"));
    json_decref(record);
    record = is_done ? parking_await(kit, job, "", PARKING_MS) : NULL;
    bool is_back = record != NULL && record_word(record, "park")[0] == '\0'; // it may have ended since
    if (is_done && !is_back)
        result_fail(result, "the parked job did not come back");
    json_decref(record);
    return is_back;
}

static void check_preempt(struct kit *kit, struct result *result)
{
    static const char *const yielding[] = { "-G", KIT_GPU, "-t", "10m", "--preemptible", "--on-preempt",
        "park", NULL };
    int64_t job = !can_park(kit, result) ? -1 : start_holder(kit, yielding, result);
    if (job < 0)
        return;
    if (give_way(kit, job, parking_gpu, result))
        parking_judge(kit, job, "preempted by parking: the other job ran, and the memory is right", result);
    else
        probe_cancel(kit, job);
    long long ms = json_integer_value(json_object_get(result->facts, "guest_ms"));
    if (result->outcome == OUTCOME_PASSED)
        result_pass(result, "another job had run %lld ms after its submit; the parked one is right", ms);
}

/* mgpud parks by itself only where `mgpu gpu test --park` has shown that memory returns unchanged. */
static bool prove_parking(struct kit *kit, struct result *result)
{
    static const char *const test[] = { "gpu", "test", "--park", "--park-most", "1G", NULL };
    struct error err = { 0 };
    json_t *answer = NULL;
    int status = instance_ask(kit, test, TEST_MS, &answer, &err);
    result_fact(result, "proof", answer != NULL ? answer : json_null());
    if (status != 0)
        result_fail(result, "mgpu gpu test --park: %s", err.message);
    return status == 0;
}

static void check_auto(struct kit *kit, struct result *result)
{
    static const char *const by_itself[] = { "--park", "auto", "--park-after", "1s", "--park-cost", "100ms",
        "--grace", "100ms", NULL };
    static const char *const usual[] = { NULL };
    static const char *const longer[] = { "-G", KIT_GPU, "-t", "2h", NULL };
    static const char *const shorter[] = { "-G", KIT_GPU, "-t", "4s", NULL };
    struct error err = { 0 };
    if (!can_park(kit, result) || !prove_parking(kit, result))
        return;
    if (instance_restart(kit, by_itself, &err) < 0) {
        result_fail(result, "%s", err.message);
        return;
    }
    int64_t job = start_holder(kit, longer, result);
    bool is_back = job >= 0 && give_way(kit, job, shorter, result);
    if (is_back)
        parking_judge(
            kit, job, "a long job was parked for a short one without a request, and is right", result);
    if (instance_restart(kit, usual, &err) < 0)
        result_fail(result, "mgpud does not start again: %s", err.message);
}

const struct check kit_park_way_checks[] = {
    { "park-two", "two processes of a job parked", 4000, NEED_JOBS, check_two, RANK_MIDDLE },
    { "park-mps", "parking a share under MPS", 4000, NEED_JOBS, check_mps_share, RANK_MIDDLE },
    { "park-refused", "jobs that cannot be parked", 2000, NEED_JOBS, check_refusals, RANK_MIDDLE },
    { "park-crash", "kill -9 of all daemons while a job is parked", 4000, NEED_JOBS, check_crash,
        RANK_MIDDLE },
    { "park-cancel", "a parked job that is cancelled", 3000, NEED_JOBS, check_cancel, RANK_MIDDLE },
    { "park-preempt", "preemption by parking", 5000, NEED_JOBS, check_preempt, RANK_MIDDLE },
    { "park-auto", "a job that mgpud parks automatically", 30000, NEED_JOBS, check_auto, RANK_LOW },
    { 0 },
};

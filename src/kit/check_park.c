/* SPDX-License-Identifier: MIT */
/*
 * Jobs whose GPU memory goes to host memory and comes back. A job fills its memory with a pattern whose
 * positions have 64 bits, and compares it at its end; before it, a job with the same memory that is not
 * parked does the same, so that a check that is at fault itself is told from memory that parking changed.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "kit/child.h"
#include "kit/instance.h"
#include "kit/kit.h"
#include "kit/probe.h"

#define ASK_MS       20000
#define PARK_MS      20000 // and PARK_MIB_S
#define PARK_MIB_S   1000  // the slowest that is awaited: an H200 saved 1900, and restored 5400
#define CHECK_MIB_S  4000  // a program that takes memory, fills and compares it
#define LOOK_MS      100
#define READY_MS     20000
#define END_MS       30000
#define HELD         "\"ready\""
#define HOLD_S       "8" // the job must hold its memory when it is parked
#define NUMBER       32
#define GIB_MIB      1024
#define LESS_PERCENT 25U // of the free memory of the GPU
#define MOST_PERCENT 90U
#define HOST_PERCENT 70 // of the host memory that is available; the rest is the machine's
#define MEMINFO_MAX  65536U
#define KIB_PER_MIB  1024

static const char *const one[] = { "-G", "0", NULL };

/* For how long a check may wait that moves so much memory at that speed. */
static int64_t time_for(long long mib, long long mib_per_s, int64_t spare_ms)
{
    return spare_ms + mib * 1000 / mib_per_s;
}

/* The record of a job once it is `state` of park, or not parked at all: the caller frees it. */
static json_t *await_park(struct kit *kit, const char *number, const char *state, int64_t most_ms)
{
    const char *const show[] = { "show", number, NULL };
    int64_t end_ms = clock_boot_ms() + kit_left_ms(kit, most_ms);
    for (;;) {
        struct error err = { 0 };
        json_t *record = NULL;
        (void)instance_ask(kit, show, ASK_MS, &record, &err);
        const char *park = record_word(record, "park");
        if (strcmp(park, state) == 0 || park[0] == '\0' || clock_boot_ms() > end_ms)
            return record;
        json_decref(record);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

/* Why the job was not parked. */
static const char *refusal_of(const json_t *record)
{
    const char *why = record_word(record, "park_text");
    return why[0] != '\0' ? why : "no reason was given";
}

/* Parks the job, and brings it back; each may take `most_ms`. False after result_skip() or result_fail(). */
static bool park(struct kit *kit, const char *number, int64_t most_ms, struct result *result)
{
    const char *const park[] = { "park", number, NULL }, *const unpark[] = { "unpark", number, NULL };
    struct error err = { 0 };
    int64_t begin_ms = clock_boot_ms();
    if (instance_ask(kit, park, ASK_MS, NULL, &err) != 0) {
        result_skip(result, "the job cannot be parked: %s", err.message);
        return false;
    }
    json_t *record = await_park(kit, number, "parked", most_ms);
    bool is_parked = strcmp(record_word(record, "park"), "parked") == 0;
    result_fact(result, "park_ms", json_integer(clock_boot_ms() - begin_ms));
    if (!is_parked && record_word(record, "park")[0] == '\0')
        result_skip(result, "the job was not parked: %s", refusal_of(record));
    else if (!is_parked)
        result_fail(
            result, "after %lld s it is still %s", (long long)most_ms / 1000, record_word(record, "park"));
    json_decref(record);
    if (!is_parked)
        return false;
    begin_ms = clock_boot_ms();
    int status = instance_ask(kit, unpark, ASK_MS, NULL, &err);
    record = status == 0 ? await_park(kit, number, "", most_ms) : NULL;
    bool is_back = record != NULL && record_word(record, "park")[0] == '\0';
    result_fact(result, "unpark_ms", json_integer(clock_boot_ms() - begin_ms));
    json_decref(record);
    if (!is_back)
        result_fail(result, "the job did not come back: %s", err.message);
    return is_back;
}

/* Host memory that is available; 0: not known. */
static long long available_mib(void)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    long long kib = 0;
    if (file_read(AT_FDCWD, "/proc/meminfo", MEMINFO_MAX, &text) == 0) {
        const char *line = strstr(buffer_text(&text), "MemAvailable:");
        if (line != NULL)
            (void)sscanf(line, "MemAvailable: %lld", &kib);
    }
    return kib / KIB_PER_MIB;
}

/* The memory that a check takes: `mib`, or with 0 as much as fits both sides. 0 after result_skip(). */
static long long choose_mib(const struct kit *kit, long long mib, struct result *result)
{
    char text[PROBE_SIZE];
    long long gpu = 0, host = available_mib() * HOST_PERCENT / 100;
    probe_size(kit, MOST_PERCENT, INT64_MAX, text);
    (void)sscanf(text, "%lld", &gpu);
    result_fact(result, "gpu_mib", json_integer(gpu));
    result_fact(result, "host_mib", json_integer(host));
    if (mib > gpu)
        result_skip(result, "it needs %lld MiB of the GPU, and %lld can be used", mib, gpu);
    else if (mib > host)
        result_skip(result, "it needs %lld MiB of host memory, and %lld can be used", mib, host);
    else
        return mib > 0 ? mib : gpu < host ? gpu : host;
    return 0;
}

/* The same memory, filled and compared without parking. False after result_fail(). */
static bool is_control_right(struct kit *kit, const char *memory, int64_t most_ms, struct result *result)
{
    const char *const hold[] = { "hold", "-m", memory, "-s", "0", NULL };
    int64_t job = probe_submit(kit, one, hold, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, most_ms, result);
    if (record == NULL)
        return false;
    bool is_right = strcmp(record_word(record, "state"), "done") == 0;
    json_decref(record);
    result_fact(result, "control", json_incref(json_object_get(result->facts, "output")));
    if (!is_right)
        result_fail(result, "memory is wrong in a job that was not parked: the GPU or the check is at fault");
    return is_right;
}

/* A job that holds memory, once it does. -1 after result_fail(). */
static int64_t start_holder(
    struct kit *kit, const char *const *arguments, int64_t most_ms, struct result *result)
{
    int64_t job = probe_submit(kit, one, arguments, result);
    if (job < 0 || instance_await_output(kit, job, HELD, most_ms) == 0)
        return job;
    result_fail(result, "the job does not hold its memory");
    return -1;
}

static double gb_per_s(const struct result *result, const char *name, long long mib)
{
    double ms = (double)json_integer_value(json_object_get(result->facts, name));
    return ms > 0 ? (double)mib * (1 << 20) / 1e6 / ms : 0;
}

/* The job checks its memory at its end. A job that is not parked continues, and must not notice. */
static void park_size(struct kit *kit, long long mib, struct result *result)
{
    char number[NUMBER], memory[PROBE_SIZE];
    int64_t check_ms = time_for(mib, CHECK_MIB_S, END_MS), park_ms = time_for(mib, PARK_MIB_S, PARK_MS);
    (void)snprintf(memory, sizeof(memory), "%lldM", mib);
    const char *const hold[] = { "hold", "-m", memory, "-s", HOLD_S, NULL };
    if (!probe_has_verb(kit, "park", NULL, result) || !is_control_right(kit, memory, check_ms, result))
        return;
    int64_t job = start_holder(kit, hold, check_ms, result);
    if (job < 0)
        return;
    (void)snprintf(number, sizeof(number), "%" PRId64, job);
    bool is_back = park(kit, number, park_ms, result);
    json_t *record = probe_wait(kit, job, check_ms, result);
    if (record != NULL && strcmp(record_word(record, "state"), "done") != 0)
        result_fail(result, "the job ended as %s; the same memory was right without parking",
            record_word(record, "state"));
    else if (record != NULL && is_back)
        result_pass(result, "%lld MiB parked (%.1f GB/s) and resumed (%.1f GB/s), and right", mib,
            gb_per_s(result, "park_ms", mib), gb_per_s(result, "unpark_ms", mib));
    json_decref(record);
}

static void check_park(struct kit *kit, struct result *result)
{
    char memory[PROBE_SIZE];
    long long mib = 1;
    probe_size(kit, LESS_PERCENT, GIB_MIB, memory);
    (void)sscanf(memory, "%lld", &mib);
    if (choose_mib(kit, mib, result) > 0)
        park_size(kit, mib, result);
    if (result->outcome == OUTCOME_SKIPPED)
        kit->no_park = xstrdup(result->text);
}

/* The same with more memory, where the first could be parked. */
static void park_fitting(struct kit *kit, long long gib, struct result *result)
{
    long long mib = choose_mib(kit, gib * GIB_MIB, result);
    if (mib > 0 && kit->no_park != NULL)
        result_skip(result, "%s", kit->no_park);
    else if (mib > 0)
        park_size(kit, mib, result);
}

static void check_park_8(struct kit *kit, struct result *result)
{
    park_fitting(kit, 8, result);
}

static void check_park_40(struct kit *kit, struct result *result)
{
    park_fitting(kit, 40, result);
}

static void check_park_most(struct kit *kit, struct result *result)
{
    park_fitting(kit, 0, result);
}

/* Memory that the driver may not be able to save: the job must then run on, with its memory right. */
static void check_park_managed(struct kit *kit, struct result *result)
{
    static const char *const managed[] = { "managed", "-s", HOLD_S, NULL };
    char number[NUMBER];
    struct result attempt = { 0 };
    if (!probe_has_verb(kit, "park", NULL, result))
        return;
    int64_t job = start_holder(kit, managed, READY_MS, result);
    if (job < 0)
        return;
    (void)snprintf(number, sizeof(number), "%" PRId64, job);
    bool is_back = park(kit, number, PARK_MS, &attempt);
    result_fact(result, "attempt", attempt.facts != NULL ? attempt.facts : json_null());
    json_t *record = probe_wait(kit, job, END_MS, result);
    if (record != NULL && strcmp(record_word(record, "state"), "done") != 0)
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else if (record != NULL && attempt.outcome == OUTCOME_FAILED)
        result_fail(result, "%s", attempt.text);
    else if (record != NULL)
        result_pass(result, "%s; its memory was right", is_back ? "parked and resumed" : attempt.text);
    json_decref(record);
}

const struct check kit_park_checks[] = {
    { "park", "a job parked and resumed", 60000, NEED_JOBS, check_park },
    { "park-managed", "parking memory that GPU and program share", 60000, NEED_JOBS, check_park_managed },
    { "park-8", "8 GiB parked and resumed", 60000, NEED_JOBS, check_park_8 },
    { "park-40", "40 GiB parked and resumed", 120000, NEED_JOBS, check_park_40 },
    { "park-most", "as much as fits parked and resumed", 200000, NEED_JOBS, check_park_most },
    { 0 },
};

/* SPDX-License-Identifier: MIT */
/* What a machine gives to jobs beside GPUs: limits of the kernel, an early start, and closed device nodes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/locked.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS    40000
#define ASK_MS    20000
#define LIMIT_MIB 300
#define NUMBER    32
#define MODE_BITS 07777U

static const char *const list[] = { "list", NULL };

/* --- limits --- */

static bool is_on(const json_t *doctor, const char *feature)
{
    return json_is_true(json_object_get(instance_feature(doctor, feature), "on"));
}

static void add_feature(struct result *result, const json_t *doctor, const char *name)
{
    const json_t *feature = instance_feature(doctor, name);
    result_fact(result, name, json_string(record_word(feature, "text")));
}

/* A job may use no more host memory than it asked for, and the processors that it asked for. */
static bool limits_hold(struct kit *kit, struct result *result)
{
    static const char *const options[] = { "-g", "0", "-M", "300M", "-c", "1", NULL };
    static const char *const more[] = { "ram", "-m", "600M", NULL }, *const limits[] = { "limits", NULL };
    int64_t job = probe_submit(kit, options, limits, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    json_int_t cpus = json_integer_value(json_object_get(json_object_get(result->facts, "output"), "cpus"));
    result_fact(result, "limits", json_incref(json_object_get(result->facts, "output")));
    json_decref(record);
    job = record == NULL ? -1 : probe_submit(kit, options, more, result);
    record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return false;
    const char *by = record_word(record, "ended_by");
    bool is_ended = strcmp(by, "oom") == 0;
    if (!is_ended)
        result_fail(result, "a job with -M 300M that took 600 MiB ended by %s", by);
    else if (cpus != 1)
        result_fail(result, "a job with -c 1 has %lld processors", (long long)cpus);
    json_decref(record);
    return is_ended && cpus == 1;
}

/* Without an option of mgpud, where root may make control groups. */
static void check_limits(struct kit *kit, struct result *result)
{
    static const char *const doctor[] = { "doctor", NULL }, *const names[] = { "memory", "cpu", "pids" };
    struct error err = { 0 };
    json_t *features = NULL;
    size_t on = 0;
    (void)instance_ask(kit, doctor, ASK_MS, &features, &err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        add_feature(result, features, names[i]);
        on += is_on(features, names[i]);
    }
    const char *why = record_word(result->facts, "memory");
    json_decref(features);
    if (on < sizeof(names) / sizeof(names[0]) && !instance_is_root(kit->instance))
        result_skip(result, "mgpud runs without root here: %s", why);
    else if (on < sizeof(names) / sizeof(names[0]))
        result_skip(result, "%zu of 3 limits can be set here: %s", on, why);
    else if (limits_hold(kit, result))
        result_pass(
            result, "-M ends a job that takes more, -c 1 gives one processor, and processes are limited");
}

/* --- an early start --- */

static void judge_early(const json_t *first, const json_t *second, struct result *result)
{
    const json_t *seen = json_object_get(json_object_get(result->facts, "output"), "gpus");
    bool has_nodes = access("/dev/nvidiactl", F_OK) == 0;
    if (strcmp(record_word(first, "state"), "done") != 0 || strcmp(record_word(second, "state"), "done") != 0)
        result_fail(
            result, "the jobs ended as %s and %s", record_word(first, "state"), record_word(second, "state"));
    else if (strcmp(record_word(second, "started_at"), record_word(first, "ended_at")) >= 0)
        result_fail(result, "the job did not start before its GPU was free");
    else if (has_nodes && strcmp(record_word(second, "ended_at"), record_word(first, "ended_at")) < 0)
        result_fail(result, "the job used its GPU while another job had it");
    else if (json_array_size(seen) != 1)
        result_fail(result, "the job sees %zu GPUs", json_array_size(seen));
    else
        result_pass(result, "a job started on the CPU, and used its GPU when it was free");
}

static void check_early(struct kit *kit, struct result *result)
{
    static const char *const doctor[] = { "doctor", NULL }, *const early[] = { "-g", "1", "--early", NULL };
    static const char *const hold[] = { "hold", "-m", "64M", "-s", "60", "--until-continued", NULL };
    struct error err = { 0 };
    json_t *features = NULL;
    (void)instance_ask(kit, doctor, ASK_MS, &features, &err);
    bool can = is_on(features, "early") && !probe_has_instances(kit);
    add_feature(result, features, "early");
    json_decref(features);
    if (!can) {
        result_skip(result, "%s",
            probe_has_instances(kit) ? PROBE_ONE_INSTANCE : record_word(result->facts, "early"));
        return;
    }
    char count[NUMBER];
    (void)snprintf(count, sizeof(count), "%zu", probe_count_free(kit));
    const char *const all[] = { "-g", count, "-t", "30", NULL };
    int64_t holder = parking_start(kit, all, hold, 1, JOB_MS, result);
    int64_t job = holder < 0 ? -1 : probe_submit(kit, early, list, result);
    if (job >= 0)
        result_fact(result, "is_started", json_boolean(probe_await_start(kit, job, ASK_MS)));
    if (holder >= 0)
        parking_let_go(kit, holder);
    json_t *before = job < 0 ? NULL : probe_wait(kit, holder, JOB_MS, result);
    json_t *after = before == NULL ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (after != NULL)
        judge_early(before, after, result);
    json_decref(before);
    json_decref(after);
}

/* --- device nodes that are closed to logins --- */

/* Whether a program of another user, outside mgpu, can use a GPU. */
static bool can_use_outside(struct kit *kit)
{
    _cleanup_free_ char *program = probe_program(kit);
    const char *const argv[] = { program, "open", NULL };
    _cleanup_output_ struct child_output output = { 0 };
    int r = child_run_as(INSTANCE_OTHER_UID, argv, kit_left_ms(kit, ASK_MS), &output);
    return r == 0 && output.status == 0;
}

/* Whether a job of that user can; false after result_fail(). */
static bool can_use_in_job(struct kit *kit, struct result *result)
{
    static const char *const opening[] = { "open", NULL };
    int64_t job =
        !instance_act_as(kit, INSTANCE_OTHER_UID) ? -1 : probe_submit(kit, parking_gpu, opening, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    bool can = record != NULL && strcmp(record_word(record, "state"), "done") == 0;
    (void)instance_act_as(kit, -1);
    if (!can)
        result_fail(result, "with closed nodes a job of another user cannot use its GPU");
    json_decref(record);
    return can;
}

static void add_lock(struct kit *kit, struct result *result, const char *name)
{
    static const char *const doctor[] = { "doctor", NULL };
    struct error err = { 0 };
    json_t *features = NULL;
    (void)instance_ask(kit, doctor, ASK_MS, &features, &err);
    result_fact(result, name, json_string(record_word(instance_feature(features, "gpu-lock"), "text")));
    json_decref(features);
}

static mode_t mode_of_control(void)
{
    struct stat status;
    return stat("/dev/nvidiactl", &status) == 0 ? status.st_mode & MODE_BITS : 0;
}

static void check_lock(struct kit *kit, struct result *result)
{
    struct error err = { 0 };
    mode_t before = mode_of_control();
    if (before == 0 || geteuid() != 0 || !instance_is_root(kit->instance) || !can_use_outside(kit)) {
        result_skip(result, "it needs root, /dev/nvidiactl, and a second user who can open it");
        return;
    }
    add_lock(kit, result, "before");
    bool is_locked = locked_begin(kit, &err) == 0;
    if (is_locked)
        add_lock(kit, result, "locked");
    bool is_open = is_locked && can_use_outside(kit);
    bool can = is_locked && can_use_in_job(kit, result);
    bool is_unlocked = locked_end(kit, &err) == 0;
    add_lock(kit, result, "after");
    const char *after = record_word(result->facts, "after");
    if (!is_locked || !is_unlocked)
        result_fail(result, "%s", err.message);
    else if (is_open)
        result_fail(result, "with closed nodes another user can open them without a job");
    else if (mode_of_control() != before || !can_use_outside(kit))
        result_fail(result, "/dev/nvidiactl had the mode %04o, and has %04o", before, mode_of_control());
    else if (!text_equal(after, record_word(result->facts, "before")))
        result_fail(result, "doctor says after mgpu gpu unlock: %s", after);
    else if (can)
        result_pass(result, "locked: only a job could use the GPU; unlocked: as before");
}

const struct check kit_limit_checks[] = {
    { "limits", "limits of the kernel without an option", 500, NEED_MGPUD, check_limits, RANK_HIGH },
    { "early", "a job that starts before its GPU is free", 1500, NEED_JOBS, check_early, RANK_MIDDLE },
    { "lock", "device nodes closed to logins", 3000, NEED_JOBS, check_lock, RANK_ASKED },
    { 0 },
};

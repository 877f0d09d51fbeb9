/* SPDX-License-Identifier: MIT */
/* Jobs of the private mgpud that use a GPU: what they are given, and how they end. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS       40000
#define READY_MS     20000
#define FREE_MS      20000
#define LOOK_MS      50
#define ASK_MS       20000
#define MOST_PERCENT 80U // of the free memory
#define LESS_PERCENT 25U
#define GIB_MIB      1024

static const char *const one[] = { "-G", KIT_GPU, NULL };

static bool is_state(const json_t *record, const char *state)
{
    return strcmp(record_word(record, "state"), state) == 0;
}

/* --- what a job is given --- */

static void check_one(struct kit *kit, struct result *result)
{
    static const char *const options[] = { "-g", "1", NULL }, *const list[] = { "list", NULL };
    int64_t job = probe_submit(kit, options, list, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    const json_t *seen = json_object_get(json_object_get(result->facts, "output"), "gpus");
    const json_t *granted = json_array_get(json_object_get(record, "granted"), 0);
    if (record == NULL)
        return;
    if (!is_state(record, "done"))
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else if (json_array_size(seen) != 1)
        result_fail(result, "the job sees %zu GPUs", json_array_size(seen));
    else if (!probe_is_same(record_word(granted, "uuid"), record_word(json_array_get(seen, 0), "uuid")))
        result_fail(result, "the job was given %s and sees %s", record_word(granted, "uuid"),
            record_word(json_array_get(seen, 0), "uuid"));
    else
        result_pass(result, "the job sees its GPU, and no other");
    json_decref(record);
}

static void check_none(struct kit *kit, struct result *result)
{
    static const char *const options[] = { "-g", "0", NULL }, *const list[] = { "list", NULL };
    int64_t job = probe_submit(kit, options, list, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return;
    if (is_state(record, "done"))
        result_fail(result, "a job without GPUs can use one");
    else
        result_pass(result, "CUDA does not start in a job without GPUs");
    json_decref(record);
}

/* Which GPU is at that place of `count`. */
typedef size_t order_fn(size_t place, size_t count);

static size_t reversed(size_t place, size_t count)
{
    return count - 1 - place;
}

static size_t rotated(size_t place, size_t count)
{
    return (place + 1) % count;
}

/* 1, 3, 5, ... 0, 2, 4, ... */
static size_t odd_first(size_t place, size_t count)
{
    size_t odd = count / 2;
    return place < odd ? 2 * place + 1 : 2 * (place - odd);
}

/* The list for -G; the caller frees it. */
static char *write_order(order_fn *order, size_t count)
{
    struct buffer text = { 0 };
    for (size_t i = 0; i < count; i++)
        buffer_printf(&text, "%zu%s", order(i, count), i + 1 < count ? "," : "");
    return buffer_take(&text);
}

/* The first place at which `gpus` has not the GPU that was asked for there; `count`: none. */
static size_t find_misplaced(const struct kit *kit, const json_t *gpus, order_fn *order, size_t count)
{
    size_t at = 0;
    while (at < count && text_equal(record_word(json_array_get(gpus, at), "uuid"),
                             record_word(json_array_get(kit->nvml_gpus, order(at, count)), "uuid")))
        at++;
    return at;
}

/* Each place must have the GPU asked for, not just the first: in the record, and as CUDA numbers them in the
 * job. False after result_fail(). */
static bool is_in_order(struct kit *kit, order_fn *order, size_t count, struct result *result)
{
    _cleanup_free_ char *words = write_order(order, count);
    const char *const options[] = { "-G", words, NULL }, *const list[] = { "list", NULL };
    int64_t job = probe_submit(kit, options, list, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return false;
    const json_t *seen = json_object_get(json_object_get(result->facts, "output"), "gpus");
    size_t at = find_misplaced(kit, seen, order, count);
    size_t granted = find_misplaced(kit, json_object_get(record, "granted"), order, count);
    if (json_array_size(seen) != count)
        result_fail(result, "with -G %s the job sees %zu GPUs", words, json_array_size(seen));
    else if (at < count)
        result_fail(result, "with -G %s GPU %zu of the job is '%s'", words, at,
            record_word(json_array_get(seen, at), "uuid"));
    else if (granted < count)
        result_fail(result, "with -G %s the record of the job has another GPU at place %zu", words, granted);
    json_decref(record);
    return json_array_size(seen) == count && at == count && granted == count;
}

static void check_order(struct kit *kit, struct result *result)
{
    static order_fn *const orders[] = { reversed, rotated, odd_first };
    size_t count = json_array_size(kit->nvml_gpus), n = sizeof(orders) / sizeof(orders[0]), good = 0;
    if (count < 2 || probe_has_instances(kit)) {
        result_skip(result, count < 2 ? "there is one GPU" : PROBE_ONE_INSTANCE);
        return;
    }
    n = count == 2 ? 1 : n; // there is no other order
    while (good < n && is_in_order(kit, orders[good], count, result))
        good++;
    _cleanup_free_ char *first = write_order(orders[0], count);
    if (good == n)
        result_pass(result, "with -G %s%s the job sees the GPUs in that order", first,
            n > 1 ? ", and two other orders," : "");
}

/* The nodes that a job could open; those of other GPUs must be refused where the node has a device filter. */
static void check_nodes(struct kit *kit, struct result *result)
{
    static const char *const nodes[] = { "nodes", NULL }, *const doctor[] = { "doctor", NULL };
    struct error err = { 0 };
    json_t *features = NULL;
    (void)instance_ask(kit, doctor, ASK_MS, &features, &err);
    bool is_filtered = json_is_true(json_object_get(instance_feature(features, "devices"), "on"));
    _cleanup_free_ char *why = xstrdup(record_word(instance_feature(features, "devices"), "text"));
    json_decref(features);
    int64_t job = probe_submit(kit, one, nodes, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    const json_t *node, *list = json_object_get(json_object_get(result->facts, "output"), "nodes");
    size_t i, opened = 0;
    json_array_foreach(list, i, node) opened += json_integer_value(json_object_get(node, "open_errno")) == 0;
    if (record == NULL)
        return;
    if (!is_filtered)
        result_skip(result, "there is no device filter: %s", why);
    else if (json_array_size(list) == 0)
        result_skip(result, "there are no nodes /dev/nvidia0 and so on");
    else if (opened != 1)
        result_fail(
            result, "a job with one GPU can open %zu of %zu nodes of GPUs", opened, json_array_size(list));
    else
        result_pass(result, "a job with one GPU can open its node, and none of %zu others",
            json_array_size(list) - 1);
    json_decref(record);
}

/* --- how jobs end --- */

/* A job that holds memory on GPU 0, once it does, until it is let go. -1 after result_fail(). */
static int64_t start_holder(
    struct kit *kit, const char *const *options, const char *memory, struct result *result)
{
    const char *const hold[] = { "hold", "-m", memory, "-s", "600", "--until-continued", NULL };
    return parking_start(kit, options, hold, 1, READY_MS, result);
}

/* Most of the GPU's memory, taken by a job that is killed: how long until others may have it. */
static void check_cancel(struct kit *kit, struct result *result)
{
    char memory[PROBE_SIZE];
    probe_size(kit, MOST_PERCENT, INT64_MAX, memory);
    int64_t job = start_holder(kit, one, memory, result);
    if (job < 0)
        return;
    probe_cancel(kit, job);
    json_t *record = probe_wait(kit, job, JOB_MS, result);
    int64_t free_ms = record == NULL ? -1 : probe_await_free(kit, result);
    result_fact(result, "free_ms", json_integer(free_ms));
    if (record == NULL)
        return;
    if (!is_state(record, "cancelled"))
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else if (free_ms < 0)
        result_fail(result, "the GPU is not free %d s after the job's end", FREE_MS / 1000);
    else
        result_pass(result, "%s were free %lld ms after the job's end", memory, (long long)free_ms);
    json_decref(record);
}

static void check_limit(struct kit *kit, struct result *result)
{
    static const char *const options[] = { "-G", KIT_GPU, "-t", "3", "--grace", "1", NULL };
    int64_t job = start_holder(kit, options, "64M", result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return;
    if (is_state(record, "done") || is_state(record, "cancelled"))
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else
        result_pass(result, "the job ended as %s at its time limit", record_word(record, "state"));
    json_decref(record);
}

/* Every daemon is killed while a job computes; the job must not notice, and its memory must be right. */
static void check_crash(struct kit *kit, struct result *result)
{
    struct error err = { 0 };
    char memory[PROBE_SIZE];
    probe_size(kit, LESS_PERCENT, GIB_MIB, memory);
    int64_t job = start_holder(kit, one, memory, result);
    if (job < 0)
        return;
    int64_t begin = clock_boot_ms();
    if (instance_crash(kit, &err) < 0) {
        result_fail(result, "mgpud does not start again: %s", err.message);
        return;
    }
    result_fact(result, "restart_ms", json_integer(clock_boot_ms() - begin));
    parking_let_go(kit, job);
    json_t *record = probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return;
    if (!is_state(record, "done"))
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else
        result_pass(result, "the job ran on while all daemons were killed and started again");
    json_decref(record);
}

/* Two jobs with a part of the memory each, on one GPU at the same time. */
static void check_share(struct kit *kit, struct result *result)
{
    char share[PROBE_SIZE], memory[PROBE_SIZE];
    probe_size(kit, LESS_PERCENT, GIB_MIB, share);
    probe_size(kit, LESS_PERCENT / 2, GIB_MIB / 2, memory);
    const char *const options[] = { "-G", KIT_GPU, "-m", share, NULL };
    int64_t first = start_holder(kit, options, memory, result);
    int64_t second = first < 0 ? -1 : start_holder(kit, options, memory, result);
    if (second < 0)
        return;
    parking_let_go(kit, second);
    json_t *record = probe_wait(kit, second, JOB_MS, result);
    parking_let_go(kit, first);
    json_t *other = record == NULL ? NULL : probe_wait(kit, first, JOB_MS, result);
    if (other == NULL)
        json_decref(record);
    if (other == NULL)
        return;
    if (!is_state(record, "done") || !is_state(other, "done"))
        result_fail(
            result, "the jobs ended as %s and %s", record_word(other, "state"), record_word(record, "state"));
    else if (strcmp(record_word(record, "started_at"), record_word(other, "ended_at")) >= 0)
        result_fail(result, "the second job waited for the first");
    else
        result_pass(result, "two jobs held %s each at the same time", memory);
    json_decref(record);
    json_decref(other);
}

static void check_fault(struct kit *kit, struct result *result)
{
    static const char *const fault[] = { "fault", NULL };
    int64_t job = probe_submit(kit, one, fault, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    if (record == NULL)
        return;
    const json_t *xid = json_object_get(json_object_get(record, "usage"), "xid");
    int64_t free_ms = probe_await_free(kit, result);
    if (is_state(record, "done"))
        result_fail(result, "a write to an address that is not mapped was no error");
    else if (free_ms < 0)
        result_fail(result, "the GPU is not free after a fault of a job");
    else
        result_pass(result, "the job ended as %s, %s; the GPU is free", record_word(record, "state"),
            json_is_null(xid) || xid == NULL ? "without an Xid" : "with an Xid");
    json_decref(record);
}

/* Whether a GPU, which is then a fact, has that process: CUDA chooses which one a program has. */
static bool find_process(json_t *gpus, pid_t pid, struct result *result)
{
    json_t *gpu;
    const json_t *process;
    bool is_found = false;
    size_t i, k;
    json_array_foreach(gpus, i, gpu)
    {
        bool is_here = false;
        json_array_foreach(json_object_get(gpu, "processes"), k, process) is_here |=
            json_integer_value(json_object_get(process, "pid")) == pid;
        is_found |= is_here;
        probe_hide(gpu);
        if (is_here)
            result_fact(result, "gpu", json_incref(gpu));
    }
    return is_found;
}

/* A program outside mgpu: mgpu must see it, and give the GPU to no job meanwhile. */
static void check_external(struct kit *kit, struct result *result)
{
    static const char *const gpus[] = { "gpus", NULL };
    _cleanup_free_ char *program = probe_program(kit), *log = xasprintf("%s/external", kit->work);
    const char *const argv[] = { program, "hold", "-m", "64M", "-s", "30", NULL };
    struct error err = { 0 };
    bool is_seen = false;
    pid_t pid = child_start(argv, log, -1);
    int64_t begin = clock_boot_ms(), end = begin + kit_left_ms(kit, FREE_MS);
    while (pid > 0 && !is_seen && clock_boot_ms() < end) {
        json_t *answer = NULL;
        (void)instance_ask(kit, gpus, ASK_MS, &answer, &err);
        is_seen = find_process(json_object_get(answer, "gpus"), pid, result);
        json_decref(answer);
        (void)poll(NULL, 0, LOOK_MS);
    }
    int64_t seen_ms = clock_boot_ms() - begin;
    if (pid > 0)
        (void)child_stop(pid, SIGKILL, ASK_MS);
    if (!is_seen)
        result_fail(result,
            "mgpu did not see a program that used the GPU (pid %d); in a separate pid namespace "
            "NVML's pids are others",
            (int)pid);
    else
        result_pass(result, "seen after %lld ms", (long long)seen_ms);
    (void)probe_await_free(kit, result);
}

const struct check kit_job_checks[] = {
    { "job-one", "a job with one GPU", 200, NEED_JOBS, check_one, RANK_HIGH },
    { "job-none", "a job without GPUs", 50, NEED_JOBS, check_none, RANK_HIGH },
    { "job-order", "GPUs in the order asked for", 400, NEED_JOBS, check_order, RANK_HIGH },
    { "job-nodes", "device nodes in a job", 50, NEED_JOBS, check_nodes, RANK_HIGH },
    { "job-cancel", "memory after a job was killed", 500, NEED_JOBS, check_cancel, RANK_HIGH },
    { "job-limit", "a job at its time limit", 3100, NEED_JOBS, check_limit, RANK_MIDDLE },
    { "job-crash", "kill -9 of all daemons", 1500, NEED_JOBS, check_crash, RANK_MIDDLE },
    { "job-share", "two jobs on one GPU", 1500, NEED_JOBS, check_share, RANK_MIDDLE },
    { "job-fault", "a fault on the GPU", 500, NEED_JOBS, check_fault, RANK_HIGH },
    { "external", "a program outside mgpu", 1200, NEED_JOBS, check_external, RANK_HIGH },
    { 0 },
};

/* SPDX-License-Identifier: MIT */
/*
 * Several GPUs and several users: pairs of GPUs as mgpu and CUDA have them, NCCL inside a job, jobs of two
 * users beside each other, and one GPU that counts as lost because of mgpu's own helper alone: nothing is
 * done to the GPU.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/helper_stop.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS    60000
#define ASK_MS    20000
#define NUMBER    32
#define USERS     2
#define LOST_MS   30000
#define RETURN_MS 60000

/* --- pairs --- */

/* Whether mgpu shows a direct link from one GPU to the other. */
static bool is_linked(const json_t *gpus, size_t from, size_t to)
{
    const json_t *link;
    size_t i;
    json_array_foreach(json_object_get(json_array_get(gpus, from), "links"), i,
        link) if (json_integer_value(link) ==
                  json_integer_value(json_object_get(json_array_get(gpus, to), "index"))) return true;
    return false;
}

struct speeds {
    double slowest_linked, fastest_other;
    size_t linked, others;
};

/* False after result_fail(). */
static bool judge_pair(const json_t *gpus, const json_t *pair, struct speeds *speeds, struct result *result)
{
    size_t from = (size_t)json_integer_value(json_object_get(pair, "from"));
    size_t to = (size_t)json_integer_value(json_object_get(pair, "to"));
    double speed = json_real_value(json_object_get(pair, "gb_per_s"));
    bool linked = is_linked(gpus, from, to);
    if (linked && !json_is_true(json_object_get(pair, "access"))) {
        result_fail(
            result, "mgpu shows a link from GPU %zu to %zu, and CUDA has no access to its memory", from, to);
        return false;
    }
    if (linked && (speeds->linked++ == 0 || speed < speeds->slowest_linked))
        speeds->slowest_linked = speed;
    if (!linked && (speeds->others++ == 0 || speed > speeds->fastest_other))
        speeds->fastest_other = speed;
    return true;
}

static void judge_pairs(const json_t *gpus, const json_t *pairs, struct result *result)
{
    struct speeds speeds = { 0 };
    const json_t *pair;
    size_t i;
    json_array_foreach(pairs, i, pair)
    {
        if (!judge_pair(gpus, pair, &speeds, result))
            return;
    }
    if (speeds.linked > 0 && speeds.others > 0 && speeds.slowest_linked < speeds.fastest_other)
        result_fail(result, "a pair with a link moves %.1f GB/s, and one without %.1f", speeds.slowest_linked,
            speeds.fastest_other);
    else
        result_pass(result, "%zu pairs with a link (from %.1f GB/s), %zu without (up to %.1f GB/s)",
            speeds.linked, speeds.slowest_linked, speeds.others, speeds.fastest_other);
}

/* False after result_skip(). */
static bool has_several(const struct kit *kit, struct result *result)
{
    bool has_one = json_array_size(kit->nvml_gpus) < USERS;
    if (has_one || probe_has_instances(kit))
        result_skip(result, has_one ? "there is one GPU" : PROBE_ONE_INSTANCE);
    return !has_one && !probe_has_instances(kit);
}

static void check_pairs(struct kit *kit, struct result *result)
{
    static const char *const gpus[] = { "gpus", NULL }, *const peers[] = { "peers", NULL };
    struct error err = { 0 };
    json_t *answer = NULL;
    if (!has_several(kit, result))
        return;
    const json_t *probe = probe_run(kit, peers, JOB_MS, result);
    (void)instance_ask(kit, gpus, ASK_MS, &answer, &err);
    const json_t *shown = json_object_get(answer, "gpus");
    if (result->outcome == OUTCOME_PASSED && json_array_size(shown) != json_array_size(kit->nvml_gpus))
        result_skip(result, "mgpu does not have the GPUs of NVML alone");
    else if (result->outcome == OUTCOME_PASSED)
        judge_pairs(shown, json_object_get(probe, "pairs"), result);
    json_decref(answer);
}

/* --- NCCL --- */

/* Where frameworks bring it; NULL: the loader finds it, or nothing does. The caller frees it. */
static char *find_nccl(void)
{
    static const char *const places[] = { "/usr/lib/*-linux-gnu/libnccl.so.2", "/usr/lib64/libnccl.so.2",
        "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
        "/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
        "/opt/*/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2" };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        glob_t found;
        if (glob(places[i], 0, NULL, &found) != 0)
            continue;
        char *path = found.gl_pathc > 0 ? xstrdup(found.gl_pathv[0]) : NULL;
        globfree(&found);
        if (path != NULL)
            return path;
    }
    return NULL;
}

/* A job with all GPUs that reduces until it is let go. -1 after result_fail() or result_skip(). */
static int64_t start_ring(struct kit *kit, struct result *result)
{
    char count[NUMBER];
    _cleanup_free_ char *library = find_nccl();
    struct result attempt = { 0 };
    (void)snprintf(count, sizeof(count), "%zu", json_array_size(kit->nvml_gpus));
    const char *const options[] = { "-g", count, NULL };
    const char *const ring[] = { "reduce", "-s", "600", "--until-continued", "--nccl-library",
        library != NULL ? library : "auto", NULL };
    int64_t job = !has_several(kit, result) ? -1 : parking_start(kit, options, ring, 1, JOB_MS, &attempt);
    if (attempt.outcome != OUTCOME_FAILED)
        return job;
    if (strstr(attempt.text, "there is no NCCL") != NULL)
        result_skip(result, "there is no "
                            "libnccl.so.2");
    else
        result_fail(result, "%s", attempt.text);
    json_decref(attempt.facts);
    return -1;
}

static void check_nccl(struct kit *kit, struct result *result)
{
    int64_t job = start_ring(kit, result);
    if (job >= 0)
        parking_judge(kit, job, "all-reduces over all GPUs of a job, and the sums are correct", result);
}

/* The driver may refuse to save what NCCL maps: the job must then run on, with its sums right. */
static void check_park_nccl(struct kit *kit, struct result *result)
{
    if (kit->no_park != NULL)
        result_skip(result, "%s", kit->no_park);
    int64_t job = kit->no_park != NULL ? -1 : start_ring(kit, result);
    if (job < 0)
        return;
    parking_try(kit, job, "its sums were right", result);
}

/* --- two users --- */

/* Jobs of two users with a GPU each, at the same time. */
static void check_users(struct kit *kit, struct result *result)
{
    static const char *const hold[] = { "hold", "-m", "64M", "-s", "600", "--until-continued", NULL };
    static const char *const options[] = { "-g", "1", NULL }, *const list[] = { "list", NULL };
    if (!has_several(kit, result))
        return;
    if (!instance_act_as(kit, INSTANCE_OTHER_UID)) {
        result_skip(result, "the kit runs without root, or another user cannot execute its programs");
        return;
    }
    int64_t other = parking_start(kit, options, hold, 1, JOB_MS, result);
    (void)instance_act_as(kit, -1);
    int64_t own = other < 0 ? -1 : probe_submit(kit, options, list, result);
    json_t *mine = own < 0 ? NULL : probe_wait(kit, own, JOB_MS, result);
    size_t seen = json_array_size(json_object_get(json_object_get(result->facts, "output"), "gpus"));
    (void)instance_act_as(kit, INSTANCE_OTHER_UID);
    if (other >= 0)
        parking_let_go(kit, other);
    json_t *theirs = mine == NULL ? NULL : probe_wait(kit, other, JOB_MS, result);
    (void)instance_act_as(kit, -1);
    if (theirs != NULL && (!text_equal(record_word(mine, "state"), "done") ||
                              !text_equal(record_word(theirs, "state"), "done")))
        result_fail(
            result, "the jobs ended as %s and %s", record_word(mine, "state"), record_word(theirs, "state"));
    else if (theirs != NULL && seen != 1)
        result_fail(result, "the job sees %zu GPUs beside that of another user", seen);
    else if (theirs != NULL)
        result_pass(result, "two users had a GPU each, and neither saw the other's");
    json_decref(mine);
    json_decref(theirs);
}

/* --- a GPU that counts as lost --- */

/* On a busy machine the agent waits for longer: a helper that waits for a processor is no driver that is
 * silent. */
static bool is_busy(struct result *result)
{
    double load = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) < 1 || load <= (double)cpus)
        return false;
    result_skip(result, "the machine is busy: a load of %.1f on %ld processors", load, cpus);
    return true;
}

static void check_lost(struct kit *kit, struct result *result)
{
    if (is_busy(result))
        return;
    if (probe_has_instances(kit)) {
        result_skip(result, "a GPU has MIG instances, which are lost with it");
        return;
    }
    size_t all = probe_count_free(kit);
    struct helper_stop stop;
    struct error err = { 0 };
    if (helper_stop_begin(kit, &stop, &err) < 0) {
        result_skip(result, "%s", err.message);
        return;
    }
    int64_t lost_ms = probe_await_count(kit, all - 1, LOST_MS);
    helper_stop_end(&stop);
    int64_t back_ms = probe_await_count(kit, all, RETURN_MS);
    result_fact(result, "lost_ms", json_integer(lost_ms));
    result_fact(result, "back_ms", json_integer(back_ms));
    if (lost_ms < 0)
        result_fail(result, "with a thread of the helper stopped, no GPU or more than one counts as lost");
    else if (back_ms < 0)
        result_fail(result, "the GPU is not free again after its helper continued");
    else
        result_pass(result,
            "one GPU of %zu was lost after %.1f s, the others stayed, and it was back after %.1f s", all,
            (double)lost_ms / 1000, (double)back_ms / 1000);
}

const struct check kit_several_checks[] = {
    { "pairs", "links between GPUs", 3000, NEED_JOBS, check_pairs, RANK_HIGH },
    { "two-users", "two users with a GPU each", 1500, NEED_JOBS, check_users, RANK_HIGH },
    { "nccl", "NCCL over all GPUs of a job", 10000, NEED_JOBS, check_nccl, RANK_HIGH },
    { "park-nccl", "a job with NCCL parked", 20000, NEED_JOBS, check_park_nccl, RANK_MIDDLE },
    { "gpu-lost", "one GPU lost because of its helper", 20000, NEED_JOBS, check_lost, RANK_MIDDLE },
    { 0 },
};

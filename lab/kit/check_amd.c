/* SPDX-License-Identifier: MIT */
/*
 * AMD GPUs: what mgpu reads of them from sysfs and ROCm's library, and jobs on them. Programs compute where
 * HIP is installed, which is a part of ROCm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/gpu.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/cuda/probes.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS     40000
#define HEALTH_MS  90000
#define ASK_MS     20000
#define SAMPLES    20U
#define REMARK_MAX 256U
#define NUMBER     32
#define PATH_SIZE  64
#define GIB        ((double)(1 << 30))

/* --- what mgpu reads --- */

static json_t *describe(const struct gpu_state *gpu)
{
    return json_pack("{s:i, s:s*, s:s*, s:s*, s:i, s:I, s:I, s:i, s:i, s:i, s:i, s:b, s:s*}", "index",
        (int)gpu->index, "uuid", gpu->uuid, "model", gpu->model, "pci", gpu->pci, "render_minor",
        (int)gpu->render_minor, "memory_bytes", (json_int_t)gpu->memory_bytes, "memory_used_bytes",
        (json_int_t)gpu->memory_used_bytes, "valid", (int)gpu->valid, "temperature_c",
        (int)gpu->temperature_c, "power_mw", (int)gpu->power_mw, "processes", (int)gpu->processes.count,
        "is_lost", (int)gpu->is_lost, "trouble", gpu->trouble);
}

/* Samples each GPU, and appends it to the kit's; how many are lost or have no memory. */
static size_t read_gpus(struct kit *kit, void *state, int64_t *ret_most_us)
{
    size_t bad = 0;
    for (size_t i = 0; i < gpu_amd.count(state); i++) {
        struct gpu_state gpu = { 0 };
        gpu_amd.describe(state, i, &gpu);
        for (unsigned int s = 0; s < SAMPLES; s++) {
            int64_t begin_us = clock_boot_us();
            gpu_amd.sample(state, i, &gpu);
            int64_t us = clock_boot_us() - begin_us;
            *ret_most_us = us > *ret_most_us ? us : *ret_most_us;
        }
        bad += gpu.is_lost != 0 || gpu.memory_bytes == 0;
        (void)json_array_append_new(kit->amd_gpus, describe(&gpu));
        record_clear(&gpu_state_record, &gpu);
    }
    return bad;
}

static void check_amd(struct kit *kit, struct result *result)
{
    const struct gpu_spec spec = { .kind = GPU_SPEC_VENDOR,
        .vendor = GPU_VENDOR_AMD,
        .sysfs_root = kit->sysfs_root,
        .rocm_library = kit->rocm_library };
    struct gpu_progress *page = gpu_progress_new();
    struct error err = { 0 };
    char remark[REMARK_MAX] = "";
    void *state = NULL;
    int64_t most_us = 0;
    if (gpu_amd.open(&spec, page, &state, &err) < 0) {
        result_skip(result, "%s", err.message);
        gpu_progress_free(page);
        return;
    }
    kit->amd_gpus = json_array();
    size_t bad = read_gpus(kit, state, &most_us), count = json_array_size(kit->amd_gpus);
    gpu_amd.remark(state, remark, sizeof(remark));
    gpu_amd.close(state);
    gpu_progress_free(page);
    result_fact(result, "gpus", json_incref(kit->amd_gpus));
    result_fact(result, "rocm", json_string(remark));
    if (bad > 0)
        result_fail(result, "%zu of %zu GPUs are lost, or their memory is not known", bad, count);
    else
        result_pass(result, "%zu GPU%s (%s), a sample of one takes at most %.1f ms%s%s", count,
            count == 1 ? "" : "s", record_word(json_array_get(kit->amd_gpus, 0), "model"),
            (double)most_us / 1000, remark[0] != '\0' ? "; " : "", remark);
}

/* --- jobs --- */

/* An mgpud with AMD GPUs. False after result_skip() or result_fail(). */
static bool has_mgpud(struct kit *kit, struct result *result)
{
    struct error err = { 0 };
    bool has_amd = json_array_size(kit->amd_gpus) > 0;
    if (!has_amd || json_array_size(kit->nvml_gpus) > 0)
        result_skip(result, has_amd ? "mgpu uses the NVIDIA GPUs of this machine" : "there is no AMD GPU");
    else if (kit->instance == NULL && instance_start(kit, &err) < 0)
        result_fail(result, "%s", err.message);
    else
        return true;
    return false;
}

/* The nodes of AMD GPUs that a job with these options can open, and its variables; NULL after result_fail().
 * Borrowed from the facts. */
static const json_t *inspect_job(
    struct kit *kit, const char *option, const char *value, struct result *result)
{
    static const char *const nodes[] = { "nodes", NULL };
    const char *const options[] = { option, value, NULL };
    int64_t job = probe_submit(kit, options, nodes, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    bool is_there = record != NULL;
    json_decref(record);
    return is_there ? json_object_get(result->facts, "output") : NULL;
}

/* Whether the job can open that node; -1: there is none of that name. */
static int can_open(const json_t *seen, const char *path)
{
    const json_t *node;
    size_t i;
    json_array_foreach(json_object_get(seen, "amd_nodes"), i,
        node) if (text_equal(record_word(node, "path"), path)) return json_integer_value(json_object_get(node,
        "open_errno")) == 0;
    return -1;
}

static bool is_filtered(struct kit *kit)
{
    static const char *const doctor[] = { "doctor", NULL };
    struct error err = { 0 };
    json_t *features = NULL;
    (void)instance_ask(kit, doctor, ASK_MS, &features, &err);
    bool is_on = json_is_true(json_object_get(instance_feature(features, "devices"), "on"));
    json_decref(features);
    return is_on;
}

/* Whether the job of GPU `own` has what it was given: its variable, its node, and no other one. False after
 * result_fail(). */
static bool has_its_gpu(struct kit *kit, size_t own, bool is_closed, struct result *result)
{
    char number[NUMBER], path[PATH_SIZE];
    (void)snprintf(number, sizeof(number), "%zu", own);
    const char *uuid = record_word(json_array_get(kit->amd_gpus, own), "uuid");
    const json_t *seen = inspect_job(kit, "-G", number, result), *gpu;
    size_t i;
    if (seen == NULL)
        return false;
    if (uuid[0] != '\0' && !text_equal(record_word(seen, "rocr_visible"), uuid)) {
        result_fail(result, "the job of GPU %zu has ROCR_VISIBLE_DEVICES=%s in place of %s", own,
            record_word(seen, "rocr_visible"), uuid);
        return false;
    }
    if (is_closed && can_open(seen, "/dev/kfd") == 0) {
        result_fail(result, "the job of GPU %zu cannot open /dev/kfd", own);
        return false;
    }
    json_array_foreach(kit->amd_gpus, i, gpu)
    {
        (void)snprintf(path, sizeof(path), "/dev/dri/renderD%lld",
            (long long)json_integer_value(json_object_get(gpu, "render_minor")));
        int can = is_closed ? can_open(seen, path) : -1;
        if (can >= 0 && can != (i == own)) {
            result_fail(result, "the job of GPU %zu %s open %s", own, can > 0 ? "can" : "cannot", path);
            return false;
        }
    }
    return true;
}

static void check_jobs(struct kit *kit, struct result *result)
{
    if (!has_mgpud(kit, result))
        return;
    size_t count = json_array_size(kit->amd_gpus), good = 0;
    bool is_closed = is_filtered(kit);
    while (good < count && has_its_gpu(kit, good, is_closed, result))
        good++;
    const json_t *none = good == count ? inspect_job(kit, "-g", "0", result) : NULL;
    if (none == NULL)
        return;
    if (record_word(none, "rocr_visible")[0] != '\0' || (is_closed && can_open(none, "/dev/kfd") > 0))
        result_fail(result, "a job without GPUs can use one");
    else
        result_pass(result, "each of %zu GPUs is given to its job and to no other%s", count,
            is_closed && can_open(none, "/dev/kfd") >= 0 ? ""
                                                         : "; no device node is closed or none is there");
}

/* --- programs that compute --- */

/* Whether programs can use a GPU through HIP here, outside mgpu. False after result_skip() or result_fail().
 */
static bool has_hip(struct kit *kit, struct result *result)
{
    static const char *const list[] = { "list", NULL };
    return has_mgpud(kit, result) && probe_run(kit, list, JOB_MS, result) != NULL &&
           result->outcome == OUTCOME_PASSED;
}

/* Runs a verb as a job of that GPU. What it said (borrowed from the facts), or NULL after result_fail(). */
static const json_t *run_on(
    struct kit *kit, size_t own, const char *const *arguments, int64_t timeout_ms, struct result *result)
{
    char number[NUMBER];
    (void)snprintf(number, sizeof(number), "%zu", own);
    const char *const options[] = { "-G", number, NULL };
    int64_t job = probe_submit(kit, options, arguments, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, timeout_ms, result);
    if (record == NULL)
        return NULL;
    int64_t code = json_integer_value(json_object_get(record, "exit_code"));
    bool is_done = text_equal(record_word(record, "state"), "done");
    json_decref(record);
    const json_t *report = json_object_get(result->facts, "output");
    if (is_done)
        return report;
    if (code == PROBE_SKIPPED)
        result_fail(result, "HIP shows the job of GPU %zu no GPU: %s", own, record_word(report, "error"));
    else
        result_fail(result, "GPU %zu, %s: exit code %" PRId64 ": %s", own, arguments[0], code,
            record_word(report, "error"));
    return NULL;
}

/* Whether HIP shows the job its GPU alone, by the name that mgpu has for it. False after result_fail(). */
static bool is_shown(const json_t *list, size_t own, const char *uuid, struct result *result)
{
    const json_t *gpus = json_object_get(list, "gpus");
    const char *shown = record_word(json_array_get(gpus, 0), "uuid");
    if (json_array_size(gpus) == 1 && (uuid[0] == '\0' || shown[0] == '\0' || text_equal(shown, uuid)))
        return true;
    result_fail(result, "HIP shows the job of GPU %zu (%s) %zu GPUs, the first of them %s", own, uuid,
        json_array_size(gpus), shown);
    return false;
}

/* What the GPU of each job reads back is what it wrote, and the product of matrices is right. */
static void check_health(struct kit *kit, struct result *result)
{
    static const char *const list[] = { "list", NULL }, *const health[] = { "health", "-m", "1G", NULL };
    size_t count = json_array_size(kit->amd_gpus), good = 0;
    const json_t *report = NULL;
    if (!has_hip(kit, result))
        return;
    while (good < count) {
        const json_t *gpus = run_on(kit, good, list, JOB_MS, result);
        if (gpus == NULL ||
            !is_shown(gpus, good, record_word(json_array_get(kit->amd_gpus, good), "uuid"), result))
            return;
        report = run_on(kit, good, health, HEALTH_MS, result);
        if (report == NULL)
            return;
        good++;
    }
    result_pass(result,
        "each of %zu GPUs; the last: %.1f and %.1f GB/s over the bus, %.0f GB/s on the GPU, %.0f GFLOP/s",
        count, json_real_value(json_object_get(report, "to_gpu_gb_per_s")),
        json_real_value(json_object_get(report, "from_gpu_gb_per_s")),
        json_real_value(json_object_get(report, "on_gpu_gb_per_s")),
        json_real_value(json_object_get(report, "multiply_gflop_per_s")));
}

/* All free memory of one GPU is overwritten, as between two users; what was written is read back. */
static void check_scrub(struct kit *kit, struct result *result)
{
    static const char *const scrub[] = { "scrub", NULL };
    const json_t *report = has_hip(kit, result) ? run_on(kit, 0, scrub, HEALTH_MS, result) : NULL;
    if (report != NULL)
        result_pass(result, "%.1f of %.1f GiB that were free",
            (double)json_integer_value(json_object_get(report, "cleared_bytes")) / GIB,
            (double)json_integer_value(json_object_get(report, "free_bytes")) / GIB);
}

/* mgpu does not park jobs of AMD GPUs, and must say so. */
static void check_park(struct kit *kit, struct result *result)
{
    static const char *const idle[] = { "idle", "-s", "600", NULL }, *const options[] = { "-g", "1", NULL };
    char number[NUMBER];
    int64_t job = has_mgpud(kit, result) ? parking_start(kit, options, idle, 1, JOB_MS, result) : -1;
    if (job < 0)
        return;
    (void)snprintf(number, sizeof(number), "%" PRId64, job);
    const char *const park[] = { "park", number, NULL };
    struct error err = { 0 };
    bool is_refused = instance_ask(kit, park, ASK_MS, NULL, &err) != 0;
    json_t *record = is_refused ? NULL : parking_await(kit, job, "parked", PARKING_MS);
    const char *why = is_refused ? err.message : record_word(record, "park_text");
    if (text_equal(record_word(record, "park"), "parked") || why[0] == '\0')
        result_fail(result, "a job of an AMD GPU was parked, or not refused with a reason");
    else
        result_pass(result, "refused: %s", why);
    json_decref(record);
    probe_cancel(kit, job);
    json_decref(probe_wait(kit, job, JOB_MS, result));
}

const struct check kit_amd_checks[] = {
    { "amd", "AMD GPUs in sysfs and ROCm's library", 500, NEED_NOTHING, check_amd, RANK_FIRST },
    { "amd-jobs", "jobs of AMD GPUs", 2000, NEED_NOTHING, check_jobs, RANK_HIGH },
    { "amd-health", "programs that compute, as jobs of AMD GPUs", 4000, NEED_NOTHING, check_health,
        RANK_HIGH },
    { "amd-scrub", "overwriting an AMD GPU's memory", 3000, NEED_NOTHING, check_scrub, RANK_MIDDLE },
    { "amd-park", "parking a job of an AMD GPU", 1000, NEED_NOTHING, check_park, RANK_MIDDLE },
    { 0 },
};

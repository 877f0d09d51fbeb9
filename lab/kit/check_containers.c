/* SPDX-License-Identifier: MIT */
/*
 * Jobs in containers. What a container has of the driver comes from the machine's own tools, so these checks
 * see what a user would: the GPU of the job by CUDA and NVML, no node of another one even if it is mounted by
 * hand, and memory that is right after the job was parked.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/image.h"
#include "lab/kit/instance.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS 60000

static const char *const no_options[] = { NULL };

/* Runs a verb of mgpu-gpu-test in the image. Its last line, which is a fact of that name too; NULL after
 * result_fail(). */
static const json_t *run_in(struct kit *kit, const struct image *image, const char *const *options,
    const char *verb, const char *fact, struct result *result)
{
    const char *const arguments[] = { verb, NULL };
    const char *all[IMAGE_OPTIONS], *words[IMAGE_OPTIONS];
    image_options(image, options, all);
    image_arguments(image, arguments, words);
    int64_t job = probe_submit(kit, all, words, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    bool is_done = text_equal(record_word(record, "state"), "done");
    const json_t *line = json_object_get(result->facts, "output");
    if (record != NULL && !is_done)
        result_fail(result, "%s in the container ended as %s: %s", verb, record_word(record, "state"),
            json_is_string(line) ? json_string_value(line) : record_word(line, "error"));
    json_decref(record);
    if (!is_done)
        return NULL;
    result_fact(result, fact, json_incref(json_object_get(result->facts, "output")));
    return json_object_get(result->facts, fact);
}

/* Whether `gpus` of the container are the job's, and no more. False after result_fail(). */
static bool is_the_jobs(const struct kit *kit, const json_t *line, const char *library, struct result *result)
{
    const json_t *gpus = json_object_get(line, "gpus");
    const char *uuid = record_word(json_array_get(kit->nvml_gpus, kit->gpu), "uuid");
    bool is_one = json_array_size(gpus) == 1;
    if (line != NULL && !is_one)
        result_fail(
            result, "%s has %zu GPUs in the container of a job with one", library, json_array_size(gpus));
    else if (line != NULL && !probe_is_same(uuid, record_word(json_array_get(gpus, 0), "uuid")))
        result_fail(result, "%s has %s in the container, and the job %s", library,
            record_word(json_array_get(gpus, 0), "uuid"), uuid);
    else
        return line != NULL;
    return false;
}

/* NVML goes by the nodes: where there are none, as with WSL, it has all GPUs. False after result_fail(). */
static bool has_the_jobs(const struct kit *kit, const json_t *line, struct result *result)
{
    const json_t *gpu, *gpus = json_object_get(line, "gpus");
    const char *uuid = record_word(json_array_get(kit->nvml_gpus, kit->gpu), "uuid");
    bool has_nodes = json_array_size(json_object_get(json_object_get(result->facts, "nodes"), "nodes")) > 0;
    bool is_there = false;
    size_t i;
    json_array_foreach(gpus, i, gpu) is_there |= text_equal(record_word(gpu, "uuid"), uuid);
    if (line != NULL && has_nodes)
        return is_the_jobs(kit, line, "NVML", result);
    if (line != NULL && !is_there)
        result_fail(
            result, "NVML has %zu GPUs in the container, and not that of the job", json_array_size(gpus));
    return is_there;
}

static size_t count_open(const json_t *nodes)
{
    const json_t *node;
    size_t i, count = 0;
    json_array_foreach(nodes, i, node) count += json_integer_value(json_object_get(node, "open_errno")) == 0;
    return count;
}

/* One that is not the job's; NULL: there is none. */
static const json_t *other_gpu(const struct kit *kit)
{
    return probe_has_instances(kit) ? NULL : json_array_get(kit->nvml_gpus, kit->gpu == 0 ? 1 : 0);
}

/* The nodes that the container has, and that of another GPU which the user mounts. False after result_fail().
 */
static bool are_nodes_closed(struct kit *kit, const struct image *image, struct result *result)
{
    const json_t *own = json_object_get(run_in(kit, image, no_options, "nodes", "nodes", result), "nodes");
    const json_t *other = other_gpu(kit);
    _cleanup_free_ char *node =
        xasprintf("/dev/nvidia%lld", (long long)json_integer_value(json_object_get(other, "minor")));
    _cleanup_free_ char *mount = xasprintf("%s:%s", node, node);
    const char *const by_hand[] = { "--image-mount", mount, NULL };
    if (own == NULL)
        return false;
    if (count_open(own) > 1) {
        result_fail(result, "the container can open %zu nodes of GPUs", count_open(own));
        return false;
    }
    if (json_array_size(own) == 0 || other == NULL)
        return true; // there are no nodes, or no other
    own = json_object_get(run_in(kit, image, by_hand, "nodes", "nodes_by_hand", result), "nodes");
    if (own != NULL && count_open(own) > 1)
        result_fail(result, "a container that mounts %s can open it", node);
    return own != NULL && count_open(own) <= 1;
}

static void check_runtime(struct kit *kit, const char *runtime, struct result *result)
{
    _cleanup_image_ struct image image = { 0 };
    if (!image_make(kit, runtime, &image, result))
        return;
    result_fact(result, "driver", json_string(image.mount != NULL ? image.mount : "by the runtime"));
    bool is_right =
        is_the_jobs(kit, run_in(kit, &image, no_options, "list", "cuda", result), "CUDA", result) &&
        are_nodes_closed(kit, &image, result) &&
        has_the_jobs(kit, run_in(kit, &image, no_options, "nvml", "nvml", result), result);
    if (is_right)
        result_pass(result, "%s: the job sees its GPU and no other", record_word(result->facts, "runtime"));
    image_leave(kit, &image);
}

static void check_podman(struct kit *kit, struct result *result)
{
    check_runtime(kit, "podman", result);
}

static void check_apptainer(struct kit *kit, struct result *result)
{
    check_runtime(kit, "apptainer", result);
}

/* Memory of a program in a container, which the driver may refuse to save. */
static void check_park(struct kit *kit, struct result *result)
{
    static const char *const runtimes[] = { "podman", "apptainer" };
    const char *const hold[] = { "hold", "-m", "64M", "-s", "600", "--until-continued", NULL };
    _cleanup_image_ struct image image = { 0 };
    const char *options[IMAGE_OPTIONS], *words[IMAGE_OPTIONS];
    bool is_made = false;
    if (kit->no_park != NULL)
        result_skip(result, "%s", kit->no_park);
    for (size_t i = 0; kit->no_park == NULL && !is_made && i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        image_clear(&image);
        is_made = image_make(kit, runtimes[i], &image, result);
    }
    if (!is_made)
        return;
    image_options(&image, no_options, options);
    image_arguments(&image, hold, words);
    int64_t job = parking_start(kit, options, words, 1, JOB_MS, result);
    if (job >= 0)
        parking_try(kit, job, "its memory was correct", result);
    image_leave(kit, &image);
}

const struct check kit_container_checks[] = {
    { "podman", "a job in a container of podman", 15000, NEED_JOBS, check_podman, RANK_MIDDLE },
    { "apptainer", "a job in a container of apptainer", 10000, NEED_JOBS, check_apptainer, RANK_MIDDLE },
    { "park-image", "parking a job in a container", 12000, NEED_JOBS, check_park, RANK_MIDDLE },
    { 0 },
};

/* SPDX-License-Identifier: MIT */
/*
 * A step that requests GPUs sees those that mgpud has chosen for it. Each of its tasks sees all of them, with
 * --gpus-per-task its own, or those that --gpu-bind selects by their places among them. Other steps see all
 * GPUs of the job.
 */
#include "compat/step/step_gpus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/gpu_vendor.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "compat/stepd/gpu_places.h"
#include "job/spec.h"

#define SLURM_ORDINAL "GPU_DEVICE_ORDINAL" // Slurm's variable, for GPUs of all vendors

/* Places of GPUs among those of the step on the node. */
struct picks {
    size_t places[SPEC_GPUS_MAX];
    size_t count;
};

static void pick(struct picks *picks, size_t place)
{
    if (picks->count < SPEC_GPUS_MAX)
        picks->places[picks->count++] = place;
}

static void pick_range(struct picks *picks, size_t first, size_t count, size_t all)
{
    for (size_t i = first; i < first + count && i < all; i++)
        pick(picks, i);
}

/* The number at that place in "0,1,2"; after the last one, the list starts again. False if it is not a
 * list. */
static bool read_item(const char *list, size_t place, int base, uint64_t *ret)
{
    size_t count = 1;
    for (const char *p = list; *p != '\0'; p++)
        count += *p == ',';
    for (place %= count; place > 0; place--)
        list = strchr(list, ',') + 1;
    char *end = NULL;
    *ret = strtoull(list, &end, base);
    return end != list && (*end == ',' || *end == '\0');
}

static int pick_single(const char *value, uint32_t local, size_t all, struct picks *ret)
{
    uint64_t each = 0;
    if (!read_item(value, 0, 10, &each) || each == 0 || strchr(value, ',') != NULL)
        return -EINVAL;
    pick(ret, local / each % all);
    return 0;
}

static int pick_per_task(const char *value, uint32_t local, size_t all, struct picks *ret)
{
    uint64_t each = 0;
    if (!read_item(value, 0, 10, &each) || each == 0 || strchr(value, ',') != NULL)
        return -EINVAL;
    pick_range(ret, (size_t)(local * each), (size_t)each, all);
    return 0;
}

static int pick_map(const char *value, uint32_t local, size_t all, struct picks *ret)
{
    uint64_t place = 0;
    if (!read_item(value, local, 10, &place) || place >= all)
        return -EINVAL;
    pick(ret, (size_t)place);
    return 0;
}

static int pick_mask(const char *value, uint32_t local, size_t all, struct picks *ret)
{
    uint64_t mask = 0;
    if (!read_item(value, local, 16, &mask) || mask == 0 || (all < 64 && mask >> all != 0))
        return -EINVAL;
    for (size_t i = 0; i < all && i < 64; i++)
        if ((mask >> i & 1) != 0)
            pick(ret, i);
    return 0;
}

static int pick_all(const char *value, uint32_t local, size_t all, struct picks *ret)
{
    pick_range(ret, 0, all, all);
    return value[0] == '\0' ? 0 : -EINVAL;
}

/* "closest" selects nothing: the GPUs of a job as a whole are near its CPUs. */
static const struct {
    const char *name;
    int (*pick)(const char *value, uint32_t local, size_t all, struct picks *ret);
} kinds[] = { { "none", pick_all }, { "closest", pick_all }, { "single:", pick_single },
    { "per_task:", pick_per_task }, { "map_gpu:", pick_map }, { "mask_gpu:", pick_mask } };

static int bind(const struct step *step, uint32_t local, size_t all, struct picks *ret)
{
    static const char *const words[] = { "verbose,", "v,", "quiet,", "q," };
    const char *text = step->job->gpu_bind;
    for (size_t i = 0; text != NULL && i < sizeof(words) / sizeof(words[0]); i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            text += strlen(words[i]);
    if (text == NULL && step->job->gpus_per_task > 0)
        pick_range(ret, (size_t)step->job->gpus_per_task * local, (size_t)step->job->gpus_per_task, all);
    else if (text == NULL)
        pick_range(ret, 0, all, all);
    for (size_t i = 0; text != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncmp(text, kinds[i].name, strlen(kinds[i].name)) == 0)
            return kinds[i].pick(text + strlen(kinds[i].name), local, all, ret);
    return text == NULL ? 0 : -EINVAL;
}

int step_check_gpus(const struct step *step, struct error *err)
{
    for (uint32_t i = 0; step->job->gpu_bind != NULL && i < step->count; i++) {
        struct picks picks = { 0 };
        int64_t all = step_gpus_on(step, step->tasks[i].node);
        if (bind(step, step->tasks[i].local, all > 0 ? (size_t)all : 1, &picks) < 0)
            return error_set(err, -EINVAL,
                "Invalid --gpu-bind argument: %.60s (none, closest, single:N, per_task:N, map_gpu:LIST or "
                "mask_gpu:LIST, with places among the GPUs of the step)",
                step->job->gpu_bind);
    }
    return 0;
}

/* --- variables --- */

/* Their places among the GPUs that the job has on the node: "0,2". */
static char *list_places(const json_t *gpus, const struct picks *picks)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (size_t i = 0; i < picks->count; i++)
        buffer_printf(&out, "%s%" PRId64, i > 0 ? "," : "",
            field_integer(json_array_get(gpus, picks->places[i]), "place", 0));
    return buffer_take(&out);
}

/* By their ids, which do not depend on a list: for another node whose slurmstepd is older than
 * STEPD_GPU_PLACES. */
static char *name_gpus(const json_t *gpus, const char *key, const struct picks *picks)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (size_t i = 0; i < picks->count; i++) {
        const json_t *gpu = json_array_get(gpus, picks->places[i]);
        const char *text = field_text(gpu, key), *comma = out.length > 0 ? "," : "";
        if (text != NULL)
            buffer_printf(&out, "%s%s", comma, text);
        else
            buffer_printf(&out, "%s%" PRId64, comma, field_integer(gpu, "index", 0));
    }
    return buffer_take(&out);
}

static char *count_up(size_t count)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (size_t i = 0; i < count; i++)
        buffer_printf(&out, "%s%zu", i > 0 ? "," : "", i);
    return buffer_take(&out);
}

/* Sets "0,1" in all variables that number the GPUs of the job. */
static void set_places(const char *ordinals, struct strings *env)
{
    if (getenv(SLURM_ORDINAL) != NULL)
        strings_set_env(env, SLURM_ORDINAL, ordinals);
    for (size_t i = 0; i < gpu_vendors_count; i++)
        for (const struct gpu_variable *variable = gpu_vendors[i].variables; variable->name != NULL;
             variable++)
            if (variable->kind == GPU_VARIABLE_PLACES && getenv(variable->name) != NULL)
                strings_set_env(env, variable->name, ordinals);
}

void step_set_gpus(const struct step *step, const struct step_task *task, struct strings *env)
{
    const char *job_gpus = getenv("SLURM_JOB_GPUS");
    const json_t *gpus =
        json_object_get(json_array_get(json_object_get(step->record, "nodes"), task->node), "gpus");
    struct picks all = { 0 }, own = { 0 };
    bool is_here = step->ranks[task->node] == step->here;
    if (json_array_size(gpus) == 0) {
        if (job_gpus != NULL && is_here)
            strings_set_env(env, "SLURM_STEP_GPUS", job_gpus);
        return;
    }
    pick_range(&all, 0, json_array_size(gpus), json_array_size(gpus));
    (void)bind(step, task->local, json_array_size(gpus), &own); // checked before the step began
    _cleanup_free_ char *indexes = name_gpus(gpus, "index", &all);
    _cleanup_free_ char *ordinals = count_up(own.count), *places = list_places(gpus, &own);
    strings_set_env(env, "SLURM_STEP_GPUS", indexes);
    if (!is_here && own.count > 0)
        strings_set_env(env, STEPD_GPU_PLACES, places);
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        const char *name = gpu_vendors[i].variables[0].name;
        const char *list = name != NULL ? getenv(name) : NULL;
        bool is_set = name != NULL && (list != NULL || step->here == STEP_OUTSIDE);
        _cleanup_free_ char *chosen = !is_set   ? NULL
                                      : is_here ? stepd_gpus_at(list, places)
                                                : name_gpus(gpus, "uuid", &own);
        if (is_set)
            strings_set_env(env, name, chosen != NULL ? chosen : "");
    }
    set_places(ordinals, env);
}

/* SPDX-License-Identifier: MIT */
/* Parses the value of --gpus. The words are a table and the backends of vendors; only "sim" has arguments. */
#include "wire/gpu_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/parse.h"
#include "wire/message.h"

#define SIM_PREFIX     "sim:"
#define SIM_MODEL      "Simulated GPU"
#define SIM_MEMORY_MIN (UINT64_C(1) << 20)
#define SIM_MEMORY_MAX (UINT64_C(1) << 50)

static const struct {
    const char *word;
    enum gpu_spec_kind kind;
} words[] = { { "auto", GPU_SPEC_AUTO }, { "none", GPU_SPEC_NONE } };

/* "8x24G" */
static int parse_shape(const char *shape, struct gpu_spec *spec, struct error *err)
{
    int64_t count;
    const char *by = strchr(shape, 'x');
    if (by == NULL)
        return error_set(err, -EINVAL, "--gpus sim:%s has no number of GPUs or no memory size", shape);
    _cleanup_free_ char *number = xstrndup(shape, (size_t)(by - shape));
    int r = parse_integer(number, "the number of simulated GPUs", 1, NODE_GPUS_MAX, &count, err);
    if (r < 0)
        return r;
    r = parse_size(by + 1, "the memory of a simulated GPU", &spec->memory_bytes, err);
    if (r < 0)
        return r;
    if (spec->memory_bytes < SIM_MEMORY_MIN || spec->memory_bytes > SIM_MEMORY_MAX)
        return error_set(err, -ERANGE, "the memory of a simulated GPU is 1M to 1048576G, not \"%s\"", by + 1);
    spec->count = (uint32_t)count;
    return 0;
}

static int check_model(const char *model, struct error *err)
{
    if (*model == '\0' || strlen(model) >= GPU_SPEC_MODEL_SIZE)
        return error_set(err, -EINVAL, "the model of a simulated GPU has 1 to %u bytes, not %zu",
            GPU_SPEC_MODEL_SIZE - 1U, strlen(model));
    for (const char *p = model; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return error_set(err, -EINVAL, "the model of a simulated GPU has a control character in it");
    return 0;
}

static int parse_sim(const char *text, struct gpu_spec *spec, struct error *err)
{
    const char *model = strchr(text, ':');
    _cleanup_free_ char *shape = model == NULL ? xstrdup(text) : xstrndup(text, (size_t)(model - text));
    int r = parse_shape(shape, spec, err);
    if (r < 0)
        return r;
    model = model == NULL ? SIM_MODEL : model + 1;
    r = check_model(model, err);
    if (r < 0)
        return r;
    (void)snprintf(spec->model, sizeof(spec->model), "%s", model);
    spec->kind = GPU_SPEC_SIM;
    return 0;
}

int gpu_spec_parse(const char *text, struct gpu_spec *ret, struct error *err)
{
    struct gpu_spec spec = { 0 };
    int r = -EINVAL;
    const struct gpu_vendor *vendor = gpu_vendor_by_backend(text);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i].word) == 0) {
            ret->kind = words[i].kind;
            return 0;
        }
    }
    if (vendor != NULL && !vendor->is_made_up) {
        ret->kind = GPU_SPEC_VENDOR;
        ret->vendor = vendor->number;
        return 0;
    }
    if (strncmp(text, SIM_PREFIX, strlen(SIM_PREFIX)) == 0)
        r = parse_sim(text + strlen(SIM_PREFIX), &spec, err);
    else
        (void)error_set(err, -EINVAL, "--gpus cannot be \"%.64s\"", text);
    if (r < 0) {
        (void)error_hint(
            err, "use auto, " GPU_VENDOR_WORDS "none, or sim:COUNTxMEMORY[:MODEL] such as sim:8x24G");
        return r;
    }
    *ret = spec;
    return 0;
}

const char *gpu_spec_sysfs(const struct gpu_spec *spec)
{
    return spec->sysfs_root != NULL ? spec->sysfs_root : "/sys";
}

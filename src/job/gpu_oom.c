/* SPDX-License-Identifier: MIT */
/* Only the text of the output is proof: a peak near the limit is normal for frameworks that keep their
 * allocations. */
#include "job/gpu_oom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"

#define LINE_SHOWN_MAX 300
#define FACTOR_MIN     1.1
#define FACTOR_MAX     10
#define SHARE_WHOLE    1000U // thousandths of a GPU
#define MIB            (1ULL << 20)

static const char *const reports[] = {
    "CUDA out of memory",               // PyTorch
    "HIP out of memory",                // PyTorch on AMD GPUs
    "CUDA_ERROR_OUT_OF_MEMORY",         // the driver, TensorFlow, Numba
    "cudaErrorMemoryAllocation",        // the runtime, RMM
    "CUDA error: out of memory",        // the runtime, PyTorch
    "cudaMalloc failed: out of memory", // llama.cpp
    "CUBLAS_STATUS_ALLOC_FAILED",       // the libraries of CUDA
    "CUDNN_STATUS_ALLOC_FAILED",
    "hipErrorOutOfMemory",        // the runtime on AMD GPUs
    "RESOURCE_EXHAUSTED: Out of", // JAX
    "RESOURCE_EXHAUSTED: Failed to allocate request for",
    "Resource exhausted: Out of memory while trying to allocate", // of before 2022
    "Resource exhausted: Failed to allocate request for",
    "cupy.cuda.memory.OutOfMemoryError", // CuPy
    "OOM when allocating tensor",        // TensorFlow
};

/* The same words for host memory. */
static const char *const host_words[] = { "device:CPU", "by allocator cpu", "by allocator mklcpu" };

static bool has_one_of(const char *line, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(line, words[i]) != NULL)
            return true;
    return false;
}

static bool is_report(const char *line)
{
    return has_one_of(line, reports, sizeof(reports) / sizeof(reports[0])) &&
           !has_one_of(line, host_words, sizeof(host_words) / sizeof(host_words[0]));
}

char *gpu_oom_line(const char *tail)
{
    _cleanup_free_ char *copy = xstrdup(tail);
    char *rest = copy, *found = NULL;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;)
        if (is_report(line))
            found = line;
    return found == NULL ? NULL : text_escape(found, LINE_SHOWN_MAX);
}

int gpu_oom_parse_retry(const char *text, struct gpu_oom_retry *ret, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *comma = strchr(copy, ',');
    double factor = 0;
    *ret = (struct gpu_oom_retry){ 0 };
    if (comma != NULL)
        *comma = '\0';
    int r = parse_number(copy[0] == 'x' ? copy + 1 : copy, "retry_oom", FACTOR_MAX, &factor, err);
    if (r == 0 && factor < FACTOR_MIN)
        r = error_set(err, -ERANGE, "retry_oom: %.40s is outside 1.1 to 10", copy);
    if (r == 0 && comma != NULL) {
        if (strncmp(comma + 1, "max=", 4) != 0)
            r = error_set(err, -EINVAL, "retry_oom: '%.40s' is not max=SIZE", comma + 1);
        else
            r = parse_size(comma + 5, "retry_oom: max", &ret->max_bytes, err);
    }
    if (r < 0)
        return error_hint(err, "write x1.5,max=80G"), r;
    ret->percent = (uint32_t)(factor * 100 + 0.5);
    return 0;
}

/* A whole GPU has no more memory, so there is no further try. */
static void take_whole(struct job_ask *ask)
{
    ask->gpu_mem = 0;
    ask->gpu_share = 0;
    free(take_ptr(ask->retry_oom));
    free(take_ptr(ask->share));
}

/* `size`: of the GPU that it had, 0: not known. */
static bool enlarge_memory(const struct job_ask *ask, const struct gpu_oom_retry *retry, uint64_t peak,
    uint64_t size, struct job_ask *ret)
{
    uint64_t base = peak > ask->gpu_mem ? peak : ask->gpu_mem;
    uint64_t wanted = ((uint64_t)((double)base * retry->percent / 100) + MIB - 1) / MIB * MIB;
    if (retry->max_bytes != 0 && ask->gpu_mem >= retry->max_bytes)
        return false;
    if (retry->max_bytes != 0 && wanted > retry->max_bytes)
        wanted = retry->max_bytes;
    ret->gpu_mem = wanted;
    if (size != 0 && wanted >= size)
        take_whole(ret);
    return true;
}

static bool enlarge_share(
    const struct job_ask *ask, const struct gpu_oom_retry *retry, uint64_t size, struct job_ask *ret)
{
    uint64_t wanted = (uint64_t)ask->gpu_share * retry->percent / 100;
    if (wanted > SHARE_WHOLE)
        wanted = SHARE_WHOLE;
    if (retry->max_bytes != 0 && size / SHARE_WHOLE * wanted > retry->max_bytes)
        return false;
    ret->gpu_share = (uint32_t)wanted;
    if (wanted == SHARE_WHOLE)
        take_whole(ret);
    return true;
}

bool gpu_oom_enlarge(
    const struct job_ask *ask, const struct job_usage *usage, uint64_t size, struct job_ask *ret)
{
    struct gpu_oom_retry retry;
    struct error ignored;
    uint64_t peak = usage_gpu_memory_peak(usage).value; // not known: the requested size is the base
    if (ask->retry_oom == NULL || ask->adopted_pid != 0 || ask->nodes > 1 || ask->gpus != 1 ||
        (ask->gpu_mem == 0 && ask->gpu_share == 0) ||
        gpu_oom_parse_retry(ask->retry_oom, &retry, &ignored) < 0)
        return false;
    job_ask_copy(ret, ask);
    bool is_larger = ask->gpu_mem != 0 ? enlarge_memory(ask, &retry, peak, size, ret)
                                       : enlarge_share(ask, &retry, size, ret);
    if (!is_larger)
        job_ask_clear(ret);
    return is_larger;
}

bool gpu_oom_take_whole(struct job_ask *ask)
{
    struct gpu_oom_retry retry;
    struct error ignored;
    if (ask->retry_oom == NULL || gpu_oom_parse_retry(ask->retry_oom, &retry, &ignored) < 0 ||
        retry.max_bytes != 0)
        return false;
    take_whole(ask);
    return true;
}

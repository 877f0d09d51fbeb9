/* SPDX-License-Identifier: MIT */
/*
 * An all-reduce by NCCL over all GPUs that this process sees, again and again: each GPU has the same words,
 * and each sum is compared on the host. The process may be parked between two rounds, or in one.
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "lab/cuda/gpu.h"
#include "lab/cuda/nccl_api.h"
#include "lab/cuda/probes.h"

#define GPUS_MAX     64
#define REDUCE_BYTES ((uint64_t)16 << 20) // of each GPU, twice

struct member {
    struct cuda_gpu gpu;
    cuda_pointer from, to;
    void *stream;
    nccl_comm comm;
};

struct ring {
    const struct cuda_api *cuda;
    const struct nccl_api *nccl;
    struct member members[GPUS_MAX];
    int count; // of members that are open
    uint64_t words;
    uint32_t *source, *sum; // of the host
};

static volatile sig_atomic_t is_continued;

static void on_continue(int signal)
{
    is_continued = 1;
}

static int use(struct ring *ring, const struct member *member, struct error *err)
{
    return cuda_check(ring->cuda, ring->cuda->context_set(member->gpu.context), "cuCtxSetCurrent", err);
}

static int open_member(struct ring *ring, int number, struct error *err)
{
    const struct cuda_api *api = ring->cuda;
    struct member *member = &ring->members[number];
    size_t bytes = ring->words * sizeof(uint32_t);
    int r = cuda_gpu_open(api, number, &member->gpu, err);
    if (r < 0)
        return r;
    ring->count++;
    r = cuda_check(api, api->allocate(&member->from, bytes), "cuMemAlloc", err);
    if (r == 0)
        r = cuda_check(api, api->allocate(&member->to, bytes), "cuMemAlloc", err);
    if (r == 0)
        r = cuda_gpu_fill(&member->gpu, member->from, ring->words, CUDA_PATTERN_SEED, err);
    if (r == 0)
        r = cuda_check(api, api->synchronize(), "cuCtxSynchronize", err);
    if (r == 0 && ring->source == NULL) {
        ring->source = xcalloc(ring->words, sizeof(uint32_t));
        r = cuda_check(api, api->copy_out(ring->source, member->from, bytes), "cuMemcpyDtoH", err);
    }
    return r == 0 ? cuda_check(api, api->stream_create(&member->stream, 0), "cuStreamCreate", err) : r;
}

static int open_ring(struct ring *ring, int count, struct error *err)
{
    int devices[GPUS_MAX], r = 0;
    nccl_comm comms[GPUS_MAX] = { NULL };
    for (int i = 0; r == 0 && i < count; i++) {
        devices[i] = i;
        r = open_member(ring, i, err);
    }
    if (r == 0)
        r = nccl_check(ring->nccl, ring->nccl->init_all(comms, count, devices), "ncclCommInitAll", err);
    for (int i = 0; r == 0 && i < count; i++)
        ring->members[i].comm = comms[i];
    ring->sum = xcalloc(ring->words, sizeof(uint32_t));
    return r;
}

static void close_ring(struct ring *ring)
{
    for (int i = 0; i < ring->count; i++)
        if (ring->members[i].comm != NULL)
            (void)ring->nccl->destroy(ring->members[i].comm);
    while (ring->count > 0)
        cuda_gpu_close(&ring->members[--ring->count].gpu); // with its memory and its stream
    free(ring->source);
    free(ring->sum);
}

static int reduce(struct ring *ring, struct error *err)
{
    const struct nccl_api *nccl = ring->nccl;
    int r = nccl_check(nccl, nccl->group_start(), "ncclGroupStart", err);
    for (int i = 0; r == 0 && i < ring->count; i++) {
        const struct member *m = &ring->members[i];
        r = use(ring, m, err);
        if (r == 0)
            r = nccl_check(nccl,
                nccl->all_reduce((const void *)(uintptr_t)m->from, (void *)(uintptr_t)m->to, ring->words,
                    NCCL_UINT32, NCCL_SUM, m->comm, m->stream),
                "ncclAllReduce", err);
    }
    if (r == 0)
        r = nccl_check(nccl, nccl->group_end(), "ncclGroupEnd", err);
    for (int i = 0; r == 0 && i < ring->count; i++) {
        r = use(ring, &ring->members[i], err);
        if (r == 0)
            r = cuda_check(
                ring->cuda, ring->cuda->stream_wait(ring->members[i].stream), "cuStreamSynchronize", err);
    }
    return r;
}

/* Adds the words of each GPU that are not the sum. */
static int compare(struct ring *ring, uint64_t *wrong, struct error *err)
{
    int r = 0;
    for (int i = 0; r == 0 && i < ring->count; i++) {
        r = use(ring, &ring->members[i], err);
        if (r == 0)
            r = cuda_check(ring->cuda,
                ring->cuda->copy_out(ring->sum, ring->members[i].to, ring->words * sizeof(uint32_t)),
                "cuMemcpyDtoH", err);
        for (uint64_t k = 0; r == 0 && k < ring->words; k++)
            *wrong += ring->sum[k] != ring->source[k] * (uint32_t)ring->count;
    }
    return r;
}

/* Rounds until the time is up. The first one is reported. */
static int run_rounds(struct ring *ring, const struct probe_options *options, json_int_t *rounds,
    uint64_t *wrong, struct error *err)
{
    int64_t end = clock_boot_us() + (int64_t)(options->seconds * 1e6);
    int r = 0;
    do {
        r = reduce(ring, err);
        if (r == 0)
            r = compare(ring, wrong, err);
        if (r == 0 && ++*rounds == 1) {
            (void)printf("{\"result\":\"" PROBE_READY "\",\"gpus\":%d}\n", ring->count);
            (void)fflush(stdout);
        }
    } while (r == 0 && clock_boot_us() < end && is_continued == 0);
    return r;
}

static int run_ring(struct ring *ring, const struct probe_options *options, struct error *err)
{
    int count = 0, version = 0;
    json_int_t rounds = 0;
    uint64_t wrong = 0;
    if (options->is_until_continued)
        (void)signal(SIGCONT, on_continue);
    int r = cuda_check(ring->cuda, ring->cuda->count(&count), "cuDeviceGetCount", err);
    if (r == 0 && ring->cuda->stream_create == NULL)
        r = error_set(err, -EIO, "the driver has no cuStreamCreate");
    if (r == 0)
        r = open_ring(ring, count < GPUS_MAX ? count : GPUS_MAX, err);
    if (r == 0)
        r = run_rounds(ring, options, &rounds, &wrong, err);
    (void)ring->nccl->version(&version);
    if (r == 0)
        (void)printf(
            "{\"result\":\"%s\",\"nccl_version\":%d,\"gpus\":%d,\"rounds\":%lld,\"wrong_words\":%llu}\n",
            wrong == 0 ? "passed" : "failed", version, ring->count, (long long)rounds,
            (unsigned long long)wrong);
    return r < 0 ? probe_failed(err) : wrong == 0 ? PROBE_OK : PROBE_WRONG;
}

int probe_reduce(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct nccl_api nccl;
    if (nccl_api_load(options->nccl_library, &nccl, &err) < 0) {
        (void)probe_failed(&err);
        return PROBE_SKIPPED;
    }
    uint64_t bytes = options->memory_bytes > 0 ? options->memory_bytes : REDUCE_BYTES;
    struct ring *ring = xcalloc(1, sizeof(*ring));
    ring->cuda = api;
    ring->nccl = &nccl;
    ring->words = bytes / sizeof(uint32_t);
    int status = run_ring(ring, options, &err);
    close_ring(ring);
    free(ring);
    nccl_api_unload(&nccl);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * Each pair of GPUs as CUDA has it: whether one reaches the memory of the other, whether their atomic
 * operations are native (as over NVLink), and how fast a copy is. The copy is compared with its source.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lab/cuda/gpu.h"
#include "lab/cuda/probes.h"

#define COPY_BYTES ((size_t)32 << 20)
#define COPIES     4
#define WORDS      (COPY_BYTES / sizeof(uint32_t))
#define GPUS_MAX   64

struct pair {
    struct cuda_gpu *from, *to;
    cuda_pointer source, target;
    int has_access, has_atomics, rank;
    float ms; // of COPIES copies
    uint64_t wrong;
};

static int copy(struct pair *pair, cuda_event begin, cuda_event end, struct error *err)
{
    const struct cuda_api *api = pair->from->api;
    int code = api->event_record(begin, NULL);
    for (int i = 0; code == CUDA_SUCCESS && i < COPIES; i++)
        code = api->copy_peer(
            pair->target, pair->to->context, pair->source, pair->from->context, COPY_BYTES, NULL);
    if (code == CUDA_SUCCESS)
        code = api->event_record(end, NULL);
    if (code == CUDA_SUCCESS)
        code = api->event_wait(end);
    if (code == CUDA_SUCCESS)
        code = api->event_elapsed(&pair->ms, begin, end);
    return cuda_check(api, code, "cuMemcpyPeerAsync", err);
}

/* With the context of the source current, which has direct access from now on where that is possible. */
static int time_copies(struct pair *pair, struct error *err)
{
    const struct cuda_api *api = pair->from->api;
    cuda_event events[2] = { NULL, NULL };
    if (pair->has_access && api->peer_enable != NULL)
        (void)api->peer_enable(pair->to->context, 0); // it may have been before
    int r = cuda_check(api, api->event_create(&events[0], 0), "cuEventCreate", err);
    if (r == 0)
        r = cuda_check(api, api->event_create(&events[1], 0), "cuEventCreate", err);
    if (r == 0)
        r = copy(pair, events[0], events[1], err);
    for (size_t i = 0; i < 2; i++)
        if (events[i] != NULL)
            (void)api->event_destroy(events[i]);
    return r;
}

static int fill(struct pair *pair, struct error *err)
{
    const struct cuda_api *api = pair->from->api;
    int r = cuda_check(api, api->context_set(pair->from->context), "cuCtxSetCurrent", err);
    if (r == 0)
        r = cuda_check(api, api->allocate(&pair->source, COPY_BYTES), "cuMemAlloc", err);
    if (r == 0)
        r = cuda_gpu_fill(pair->from, pair->source, WORDS, CUDA_PATTERN_SEED, err);
    return r == 0 ? cuda_check(api, api->synchronize(), "cuCtxSynchronize", err) : r;
}

static int measure(struct pair *pair, struct error *err)
{
    const struct cuda_api *api = pair->from->api;
    uint64_t first;
    int r = cuda_check(api, api->context_set(pair->to->context), "cuCtxSetCurrent", err);
    if (r == 0)
        r = cuda_check(api, api->allocate(&pair->target, COPY_BYTES), "cuMemAlloc", err);
    if (r == 0)
        r = fill(pair, err);
    if (r == 0)
        r = time_copies(pair, err);
    if (r == 0)
        r = cuda_check(api, api->context_set(pair->to->context), "cuCtxSetCurrent", err);
    if (r == 0)
        r = cuda_gpu_count_wrong(pair->to, pair->target, WORDS, CUDA_PATTERN_SEED, &pair->wrong, &first, err);
    if (pair->target != 0)
        (void)api->release(pair->target);
    if (pair->source != 0 && api->context_set(pair->from->context) == CUDA_SUCCESS)
        (void)api->release(pair->source);
    return r;
}

static void ask(struct pair *pair)
{
    const struct cuda_api *api = pair->from->api;
    cuda_device from = pair->from->device, to = pair->to->device;
    (void)api->peer_access(&pair->has_access, from, to);
    pair->rank = -1;
    if (api->peer_attribute == NULL)
        return;
    (void)api->peer_attribute(&pair->rank, CUDA_PEER_RANK, from, to);
    (void)api->peer_attribute(&pair->has_atomics, CUDA_PEER_ATOMICS, from, to);
}

static int add_pair(
    struct cuda_gpu *gpus, int from, int to, json_t *pairs, uint64_t *wrong, struct error *err)
{
    struct pair pair = { .from = &gpus[from], .to = &gpus[to] };
    ask(&pair);
    int r = measure(&pair, err);
    if (r < 0)
        return r;
    double seconds = pair.ms > 0 ? (double)pair.ms / 1000 : 0;
    (void)json_array_append_new(
        pairs, json_pack("{s:i, s:i, s:b, s:b, s:i, s:f, s:I}", "from", from, "to", to, "access",
                   pair.has_access, "native_atomics", pair.has_atomics, "rank", pair.rank, "gb_per_s",
                   seconds > 0 ? (double)COPY_BYTES * COPIES / 1e9 / seconds : 0.0, "wrong_words",
                   (json_int_t)pair.wrong));
    *wrong += pair.wrong;
    return 0;
}

static void print_pairs(json_t *pairs, uint64_t wrong)
{
    json_t *line = json_pack("{s:s, s:O}", "result", wrong == 0 ? "passed" : "failed", "pairs", pairs);
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
    (void)puts(text != NULL ? text : "{}");
    free(text);
    json_decref(line);
}

int probe_peers(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct cuda_gpu gpus[GPUS_MAX];
    int count = 0, opened = 0;
    uint64_t wrong = 0;
    json_t *pairs = json_array();
    int r = cuda_check(api, api->count(&count), "cuDeviceGetCount", &err);
    if (r == 0 && (api->peer_access == NULL || api->copy_peer == NULL))
        r = error_set(&err, -EIO, "the driver has no cuMemcpyPeerAsync");
    count = count < GPUS_MAX ? count : GPUS_MAX;
    for (; r == 0 && opened < count; opened += r == 0)
        r = cuda_gpu_open(api, opened, &gpus[opened], &err);
    for (int i = 0; r == 0 && i < count; i++)
        for (int k = 0; r == 0 && k < count; k++)
            if (i != k)
                r = add_pair(gpus, i, k, pairs, &wrong, &err);
    if (r == 0)
        print_pairs(pairs, wrong);
    json_decref(pairs);
    while (opened > 0)
        cuda_gpu_close(&gpus[--opened]);
    return r < 0 ? probe_failed(&err) : wrong == 0 ? PROBE_OK : PROBE_WRONG;
}

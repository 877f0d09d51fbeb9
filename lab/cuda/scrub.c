/* SPDX-License-Identifier: MIT */
/*
 * Overwrites all memory of a GPU that no process has, before another user gets the GPU. All of it is held at
 * once, so that nothing is overwritten twice; what was written is read back, because a driver that returns
 * success may have done nothing.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "lab/cuda/gpu.h"
#include "lab/cuda/probes.h"

#define BLOCKS_MAX  16384U
#define MIB         ((size_t)1 << 20)
#define SPARE_BYTES (2 * MIB)
#define LEFT_PART   64U // the driver's own: at most this part of the memory may remain

struct block {
    cuda_pointer at;
    size_t bytes;
};

struct scrub {
    struct cuda_gpu gpu;
    struct block *blocks;
    size_t count;
    size_t free_bytes, left_bytes; // before, and when nothing more was given
    uint64_t cleared_bytes;
};

/* Large blocks first: each call takes time. What reads the memory back needs a little, which is overwritten
 * and released at the end. */
static int take_all(struct scrub *scrub, struct error *err)
{
    static const size_t sizes[] = { 1024 * MIB, 128 * MIB, 16 * MIB, 2 * MIB };
    const struct cuda_api *api = scrub->gpu.api;
    size_t total = 0;
    cuda_pointer spare;
    int r = cuda_check(api, api->memory(&scrub->free_bytes, &total), "cuMemGetInfo", err);
    if (r == 0)
        r = cuda_check(api, api->allocate(&spare, SPARE_BYTES), "cuMemAlloc", err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int code = CUDA_SUCCESS;
        while (code == CUDA_SUCCESS && scrub->count < BLOCKS_MAX) {
            struct block *block = &scrub->blocks[scrub->count];
            code = api->allocate(&block->at, sizes[i]);
            block->bytes = sizes[i];
            scrub->count += code == CUDA_SUCCESS;
        }
        if (code != CUDA_SUCCESS && code != CUDA_OUT_OF_MEMORY)
            r = cuda_check(api, code, "cuMemAlloc", err);
    }
    if (r == 0)
        r = cuda_check(api, api->memory(&scrub->left_bytes, &total), "cuMemGetInfo", err);
    if (r == 0)
        r = cuda_gpu_fill(&scrub->gpu, spare, SPARE_BYTES / sizeof(uint32_t), CUDA_PATTERN_SEED, err);
    (void)api->release(spare);
    return r;
}

static int overwrite(struct scrub *scrub, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < scrub->count; i++)
        r = cuda_gpu_fill(&scrub->gpu, scrub->blocks[i].at, scrub->blocks[i].bytes / sizeof(uint32_t),
            CUDA_PATTERN_SEED + (uint32_t)i, err);
    for (size_t i = 0; r == 0 && i < scrub->count; i++) {
        uint64_t wrong = 0, first = 0;
        r = cuda_gpu_count_wrong(&scrub->gpu, scrub->blocks[i].at, scrub->blocks[i].bytes / sizeof(uint32_t),
            CUDA_PATTERN_SEED + (uint32_t)i, &wrong, &first, err);
        if (r == 0 && wrong > 0)
            r = error_set(err, -EIO, "%llu words do not have what was written", (unsigned long long)wrong);
        scrub->cleared_bytes += r == 0 ? scrub->blocks[i].bytes : 0;
    }
    return r;
}

static int check_rest(const struct scrub *scrub, struct error *err)
{
    char left[32], all[32];
    uint64_t most = scrub->gpu.memory_bytes / LEFT_PART;
    if (scrub->left_bytes <= (most > 2 * MIB ? most : 2 * MIB))
        return 0;
    format_size(scrub->left_bytes, left, sizeof(left));
    format_size(scrub->free_bytes, all, sizeof(all));
    return error_set(err, -EIO, "%s of %s could not be allocated", left, all);
}

int probe_scrub(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct scrub scrub = { .blocks = xcalloc(BLOCKS_MAX, sizeof(struct block)) };
    int r = cuda_gpu_open(api, (int)options->gpu, &scrub.gpu, &err);
    bool is_open = r == 0;
    if (r == 0)
        r = take_all(&scrub, &err);
    if (r == 0)
        r = check_rest(&scrub, &err);
    if (r == 0)
        r = overwrite(&scrub, &err);
    for (size_t i = 0; i < scrub.count; i++)
        (void)api->release(scrub.blocks[i].at);
    if (is_open)
        cuda_gpu_close(&scrub.gpu);
    free(scrub.blocks);
    if (r < 0)
        return probe_failed(&err);
    (void)printf("{\"result\":\"passed\",\"cleared_bytes\":%llu,\"free_bytes\":%zu,\"left_bytes\":%zu}\n",
        (unsigned long long)scrub.cleared_bytes, scrub.free_bytes, scrub.left_bytes);
    return PROBE_OK;
}

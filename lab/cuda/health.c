/* SPDX-License-Identifier: MIT */
/*
 * Times are taken on the GPU, by events around the work. Factors of the product are small whole numbers, so
 * every sum is exact in single precision in any order, and the expected element is known without a second
 * multiplication: left[i][k] = (i + k) mod 5, right[k][j] = (k + 2j) mod 7.
 */
#include "lab/cuda/health.h"

#include <stdlib.h>

#include "base/memory.h"

#define COPY_BYTES    ((size_t)64 << 20) // over the bus
#define COPY_ROUNDS   8U
#define ON_GPU_BYTES  ((size_t)256 << 20)
#define ON_GPU_ROUNDS 16U
#define MATRIX        1024U
#define MATRIX_BYTES  ((size_t)MATRIX * MATRIX * sizeof(float))
#define MATRIX_ROUNDS 16U
#define LEFT_PERIOD   5U
#define RIGHT_PERIOD  7U
#define BLOCK_BYTES   ((size_t)256 << 20) // of the memory test
#define BLOCKS_MAX    4096U
#define SPARE_BYTES   ((size_t)64 << 20) // left free for the driver
#define PARTS         16U                // of the memory, one of which is used at a time
#define MIB           (1U << 20)
#define GIGA          1e9

struct stopwatch {
    const struct cuda_api *api;
    cuda_event begin, end;
};

static int start(struct stopwatch *watch, const struct cuda_api *api, struct error *err)
{
    *watch = (struct stopwatch){ .api = api };
    int r = cuda_check(api, api->event_create(&watch->begin, 0), "cuEventCreate", err);
    if (r == 0)
        r = cuda_check(api, api->event_create(&watch->end, 0), "cuEventCreate", err);
    if (r == 0)
        r = cuda_check(api, api->event_record(watch->begin, NULL), "cuEventRecord", err);
    return r;
}

/* The seconds since start(), once the GPU has finished. */
static int stop(struct stopwatch *watch, double *ret, struct error *err)
{
    const struct cuda_api *api = watch->api;
    float ms = 0;
    int r = cuda_check(api, api->event_record(watch->end, NULL), "cuEventRecord", err);
    if (r == 0)
        r = cuda_check(api, api->event_wait(watch->end), "cuEventSynchronize", err);
    if (r == 0)
        r = cuda_check(api, api->event_elapsed(&ms, watch->begin, watch->end), "cuEventElapsedTime", err);
    if (r == 0)
        *ret = ms > 0 ? (double)ms / 1000 : 1e-6;
    return r;
}

static void finish(struct stopwatch *watch)
{
    if (watch->begin != NULL)
        (void)watch->api->event_destroy(watch->begin);
    if (watch->end != NULL)
        (void)watch->api->event_destroy(watch->end);
}

/* Small GPUs, and small parts of one, are tested with less. */
static size_t limited(const struct cuda_gpu *gpu, size_t bytes)
{
    size_t most = gpu->memory_bytes / PARTS & ~((size_t)MIB - 1);
    return most < MIB ? MIB : most < bytes ? most : bytes;
}

/* --- bandwidth --- */

enum direction { TO_GPU, FROM_GPU, ON_GPU };

/* One round that is not counted, then the rounds. */
static int time_copies(const struct cuda_api *api, enum direction direction, void *host, cuda_pointer first,
    cuda_pointer second, size_t bytes, unsigned int rounds, double *ret_gb_per_s, struct error *err)
{
    struct stopwatch watch = { 0 };
    double seconds = 0;
    int r = 0;
    for (unsigned int i = 0; r == 0 && i <= rounds; i++) {
        if (i == 1)
            r = start(&watch, api, err);
        if (r == 0)
            r = cuda_check(api,
                direction == TO_GPU     ? api->copy_in(first, host, bytes)
                : direction == FROM_GPU ? api->copy_out(host, first, bytes)
                                        : api->copy_on(second, first, bytes),
                "a copy", err);
    }
    if (r == 0)
        r = stop(&watch, &seconds, err);
    finish(&watch);
    if (r == 0)
        *ret_gb_per_s = (double)bytes * rounds * (direction == ON_GPU ? 2 : 1) / seconds / GIGA;
    return r;
}

static int test_bus(struct cuda_gpu *gpu, struct cuda_health *health, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    size_t bytes = limited(gpu, COPY_BYTES);
    void *host = NULL;
    cuda_pointer on_gpu = 0;
    int r = cuda_check(api, api->allocate_host(&host, bytes), "cuMemAllocHost", err);
    if (r == 0)
        r = cuda_check(api, api->allocate(&on_gpu, bytes), "cuMemAlloc", err);
    if (r == 0)
        r = time_copies(api, TO_GPU, host, on_gpu, 0, bytes, COPY_ROUNDS, &health->to_gpu_gb_per_s, err);
    if (r == 0)
        r = time_copies(api, FROM_GPU, host, on_gpu, 0, bytes, COPY_ROUNDS, &health->from_gpu_gb_per_s, err);
    if (on_gpu != 0)
        (void)api->release(on_gpu);
    if (host != NULL)
        (void)api->release_host(host);
    return r;
}

static int test_memory_speed(struct cuda_gpu *gpu, struct cuda_health *health, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    size_t bytes = limited(gpu, ON_GPU_BYTES);
    cuda_pointer first = 0, second = 0;
    int r = cuda_check(api, api->allocate(&first, bytes), "cuMemAlloc", err);
    if (r == 0)
        r = cuda_check(api, api->allocate(&second, bytes), "cuMemAlloc", err);
    if (r == 0)
        r = time_copies(
            api, ON_GPU, NULL, first, second, bytes, ON_GPU_ROUNDS, &health->on_gpu_gb_per_s, err);
    if (first != 0)
        (void)api->release(first);
    if (second != 0)
        (void)api->release(second);
    return r;
}

/* --- product of matrices --- */

static float left_at(size_t i, size_t k)
{
    return (float)((i + k) % LEFT_PERIOD);
}

static float right_at(size_t k, size_t j)
{
    return (float)((k + 2 * j) % RIGHT_PERIOD);
}

/* The elements repeat: only (i mod 5, j mod 7) matters. */
static uint64_t count_wrong(const float *product)
{
    float expected[LEFT_PERIOD][RIGHT_PERIOD] = { 0 };
    uint64_t wrong = 0;
    for (size_t i = 0; i < LEFT_PERIOD; i++)
        for (size_t j = 0; j < RIGHT_PERIOD; j++)
            for (size_t k = 0; k < MATRIX; k++)
                expected[i][j] += left_at(i, k) * right_at(k, j);
    for (size_t i = 0; i < MATRIX; i++)
        for (size_t j = 0; j < MATRIX; j++)
            wrong += product[i * MATRIX + j] < expected[i % LEFT_PERIOD][j % RIGHT_PERIOD] ||
                     product[i * MATRIX + j] > expected[i % LEFT_PERIOD][j % RIGHT_PERIOD];
    return wrong;
}

static int multiply(
    struct cuda_gpu *gpu, const cuda_pointer matrices[3], double *ret_seconds, struct error *err)
{
    struct stopwatch watch = { 0 };
    int r = 0;
    for (unsigned int i = 0; r == 0 && i <= MATRIX_ROUNDS; i++) {
        if (i == 1)
            r = start(&watch, gpu->api, err);
        if (r == 0)
            r = cuda_gpu_multiply(gpu, matrices[0], matrices[1], matrices[2], MATRIX, err);
    }
    if (r == 0)
        r = stop(&watch, ret_seconds, err);
    finish(&watch);
    return r;
}

static int test_product(struct cuda_gpu *gpu, struct cuda_health *health, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    _cleanup_free_ float *host = xcalloc((size_t)MATRIX * MATRIX, sizeof(float));
    cuda_pointer matrices[3] = { 0 };
    double seconds = 0;
    int r = 0;
    for (size_t m = 0; r == 0 && m < 3; m++) {
        for (size_t i = 0; i < (size_t)MATRIX * MATRIX; i++)
            host[i] = m == 0   ? left_at(i / MATRIX, i % MATRIX)
                      : m == 1 ? right_at(i / MATRIX, i % MATRIX)
                               : 0;
        r = cuda_check(api, api->allocate(&matrices[m], MATRIX_BYTES), "cuMemAlloc", err);
        if (r == 0)
            r = cuda_check(api, api->copy_in(matrices[m], host, MATRIX_BYTES), "cuMemcpyHtoD", err);
    }
    if (r == 0)
        r = multiply(gpu, matrices, &seconds, err);
    if (r == 0)
        r = cuda_check(api, api->copy_out(host, matrices[2], MATRIX_BYTES), "cuMemcpyDtoH", err);
    for (size_t m = 0; m < 3; m++)
        if (matrices[m] != 0)
            (void)api->release(matrices[m]);
    if (r < 0)
        return r;
    health->multiply_gflop_per_s = 2.0 * MATRIX * MATRIX * MATRIX * MATRIX_ROUNDS / seconds / GIGA;
    health->wrong_products = count_wrong(host);
    return 0;
}

/* --- memory --- */

struct blocks {
    cuda_pointer *at;
    size_t count, bytes; // of each
};

static uint32_t seed_of(size_t block, uint32_t mask)
{
    return (CUDA_PATTERN_SEED + (uint32_t)block) ^ mask;
}

/* All blocks are filled before the first is checked, so a wrong address line shows too. */
static int check_pattern(struct cuda_gpu *gpu, const struct blocks *blocks, uint32_t mask,
    struct cuda_health *health, struct error *err)
{
    const uint64_t words = blocks->bytes / sizeof(uint32_t);
    int r = 0;
    for (size_t i = 0; r == 0 && i < blocks->count; i++)
        r = cuda_gpu_fill(gpu, blocks->at[i], words, seed_of(i, mask), err);
    for (size_t i = 0; r == 0 && i < blocks->count; i++) {
        uint64_t wrong = 0, first = 0;
        r = cuda_gpu_count_wrong(gpu, blocks->at[i], words, seed_of(i, mask), &wrong, &first, err);
        uint64_t offset = i * blocks->bytes + first * sizeof(uint32_t);
        if (r == 0 && wrong > 0 && (health->wrong_words == 0 || offset < health->first_wrong))
            health->first_wrong = offset;
        health->wrong_words += wrong;
    }
    return r;
}

static int test_memory(struct cuda_gpu *gpu, uint64_t bytes, struct cuda_health *health, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    _cleanup_free_ cuda_pointer *at = xcalloc(BLOCKS_MAX, sizeof(*at));
    struct blocks blocks = { .at = at, .bytes = limited(gpu, BLOCK_BYTES) };
    size_t free_bytes = 0, total = 0;
    int r = cuda_check(api, api->memory(&free_bytes, &total), "cuMemGetInfo", err);
    size_t spare = limited(gpu, SPARE_BYTES);
    uint64_t usable = free_bytes > spare ? free_bytes - spare : 0;
    bytes = bytes < usable ? bytes : usable;
    /* Memory that another process takes meanwhile is not tested, which is no error. */
    while (r == 0 && blocks.count < BLOCKS_MAX && (blocks.count + 1) * blocks.bytes <= bytes &&
           api->allocate(&at[blocks.count], blocks.bytes) == CUDA_SUCCESS)
        blocks.count++;
    if (r == 0)
        r = check_pattern(gpu, &blocks, 0, health, err);
    if (r == 0)
        r = check_pattern(gpu, &blocks, UINT32_MAX, health, err);
    health->tested_bytes = blocks.count * blocks.bytes;
    for (size_t i = 0; i < blocks.count; i++)
        (void)api->release(at[i]);
    return r;
}

int cuda_health_test(struct cuda_gpu *gpu, uint64_t memory_bytes, struct cuda_health *ret, struct error *err)
{
    struct cuda_health health = { 0 };
    int r = test_bus(gpu, &health, err);
    if (r == 0)
        r = test_memory_speed(gpu, &health, err);
    if (r == 0)
        r = test_product(gpu, &health, err);
    if (r == 0)
        r = test_memory(gpu, memory_bytes, &health, err);
    if (r == 0)
        *ret = health;
    return r;
}

bool cuda_health_is_right(const struct cuda_health *health)
{
    return health->wrong_words == 0 && health->wrong_products == 0;
}

/* SPDX-License-Identifier: MIT */
#include "lab/cuda/probes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "lab/cuda/gpu.h"
#include "lab/cuda/health.h"

#define HEALTH_BYTES  ((uint64_t)4 << 30) // of memory tested by default
#define HOLD_BYTES    ((uint64_t)256 << 20)
#define MANAGED_WORDS ((uint64_t)1 << 20)
#define BAD_ADDRESS   0x10U
#define PAUSE_NS      50000000L
#define MIB           ((double)(1U << 20))
#define STATUS_SIZE   128

/* Ends `object`. */
static void print(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6));
    (void)puts(text != NULL ? text : "{}");
    (void)fflush(stdout);
    free(text);
    json_decref(object);
}

int probe_failed(const struct error *err)
{
    print(json_pack("{s:s, s:s}", "result", "failed", "error", err->message));
    return PROBE_WRONG;
}

int probe_start(const struct cuda_api *api)
{
    int64_t begin = clock_boot_us();
    int code = api->init(0), version = 0;
    int64_t us = clock_boot_us() - begin;
    (void)api->version(&version);
    const char *key = api->runtime == RUNTIME_HIP ? "hip_version" : "cuda_version";
    if (code == CUDA_SUCCESS) {
        print(json_pack("{s:f, s:i}", "start_ms", (double)us / 1000, key, version));
        return PROBE_OK;
    }
    /* HIP says that the device is invalid where there is none. */
    bool has_none = code == CUDA_NO_DEVICE || (api->runtime == RUNTIME_HIP && code == CUDA_INVALID_DEVICE);
    print(json_pack("{s:f, s:i, s:s, s:s, s:i}", "start_ms", (double)us / 1000, key, version, "result",
        has_none ? "skipped" : "failed", "error", cuda_api_describe(api, code), "code", code));
    return has_none ? PROBE_SKIPPED : PROBE_WRONG;
}

int probe_compile(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    _cleanup_free_ char *code = NULL;
    size_t bytes;
    if (cuda_hip_translate(api, options->arch, &code, &bytes, &err) < 0)
        return probe_failed(&err);
    print(json_pack("{s:s, s:I}", "result", "passed", "bytes", (json_int_t)bytes));
    return PROBE_OK;
}

int probe_list(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    int count = 0;
    json_t *gpus = json_array();
    int r = cuda_check(api, api->count(&count), "cuDeviceGetCount", &err);
    for (int i = 0; r == 0 && i < count; i++) {
        struct cuda_description gpu;
        r = cuda_describe(api, i, &gpu, &err);
        if (r == 0)
            (void)json_array_append_new(
                gpus, json_pack("{s:i, s:s, s:s, s:s, s:I, s:f}", "number", i, "name", gpu.name, "uuid",
                          gpu.uuid, "pci", gpu.pci, "memory_bytes", (json_int_t)gpu.memory_bytes,
                          "capability", gpu.major + gpu.minor / 10.0));
    }
    if (r == 0)
        print(json_pack("{s:s, s:O, s:b}", "result", "passed", "gpus", gpus, "can_checkpoint",
            api->checkpoint_lock != NULL));
    json_decref(gpus);
    return r == 0 ? PROBE_OK : probe_failed(&err);
}

/* `line`: "STATUS=...\n", the status of the job that this is. */
static void send_line(const char *line)
{
    ssize_t n = (ssize_t)strlen(line);
    const char *path = getenv("MGPU_NOTIFY");
    if (path == NULL)
        return;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0 && write(fd, line, (size_t)n) < n)
        (void)fprintf(stderr, "mgpu-gpu-test: the result cannot be sent to mgpu\n");
}

/* In a job the figures are its status too, which its record keeps: `mgpu gpu test` compares them later. */
static void send_status(const struct cuda_health *health)
{
    char line[STATUS_SIZE];
    (void)snprintf(line, sizeof(line), "STATUS=to %.1f from %.1f on %.1f product %.1f wrong %" PRIu64 "\n",
        health->to_gpu_gb_per_s, health->from_gpu_gb_per_s, health->on_gpu_gb_per_s,
        health->multiply_gflop_per_s, health->wrong_words + health->wrong_products);
    send_line(line);
}

int probe_health(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct cuda_gpu gpu;
    struct cuda_description about;
    struct cuda_health health;
    int64_t begin = clock_boot_us();
    int r = cuda_describe(api, (int)options->gpu, &about, &err);
    if (r == 0)
        r = cuda_gpu_open(api, (int)options->gpu, &gpu, &err);
    if (r < 0)
        return probe_failed(&err);
    r = cuda_health_test(
        &gpu, options->memory_bytes > 0 ? options->memory_bytes : HEALTH_BYTES, &health, &err);
    cuda_gpu_close(&gpu);
    if (r < 0)
        return probe_failed(&err);
    bool is_right = cuda_health_is_right(&health);
    send_status(&health);
    json_t *result = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f}", "result",
        is_right ? "passed" : "failed", "name", about.name, "uuid", about.uuid, "pci", about.pci,
        "to_gpu_gb_per_s", health.to_gpu_gb_per_s, "from_gpu_gb_per_s", health.from_gpu_gb_per_s,
        "on_gpu_gb_per_s", health.on_gpu_gb_per_s, "multiply_gflop_per_s", health.multiply_gflop_per_s,
        "wrong_products", (json_int_t)health.wrong_products, "tested_bytes", (json_int_t)health.tested_bytes,
        "wrong_words", (json_int_t)health.wrong_words, "seconds", (double)(clock_boot_us() - begin) / 1e6);
    if (health.wrong_words > 0)
        (void)json_object_set_new(result, "first_wrong", json_integer((json_int_t)health.first_wrong));
    print(result);
    return is_right ? PROBE_OK : PROBE_WRONG;
}

static void give_back(struct cuda_gpu *gpu, cuda_pointer at)
{
    if (at != 0)
        (void)gpu->api->release(at);
    cuda_gpu_close(gpu);
}

static volatile sig_atomic_t is_continued; // it was stopped before, as while it is parked

static void on_continue(int signal)
{
    is_continued = 1;
}

/* Says that so much memory is held, and keeps it; the process may be stopped or parked meanwhile. */
static int keep(struct cuda_gpu *gpu, const struct probe_options *options, uint64_t bytes, struct error *err)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };
    int64_t end = clock_boot_us() + (int64_t)(options->seconds * 1e6);
    int r = 0;
    if (options->is_until_continued)
        (void)signal(SIGCONT, on_continue);
    print(json_pack("{s:s, s:I}", "result", "ready", "bytes", (json_int_t)bytes));
    send_line("STATUS=" PROBE_READY "\n");
    while (r == 0 && clock_boot_us() < end && is_continued == 0) {
        (void)nanosleep(&pause, NULL);
        r = cuda_gpu_spin(gpu, PAUSE_NS, err);
    }
    return r;
}

/* Counts the words that are wrong after the memory was held. */
static int hold(struct cuda_gpu *gpu, const struct probe_options *options, cuda_pointer at, uint64_t words,
    uint64_t *ret_wrong, struct error *err)
{
    uint64_t first;
    *ret_wrong = 0;
    int r = cuda_gpu_fill(gpu, at, words, CUDA_PATTERN_SEED, err);
    if (r == 0)
        r = cuda_check(gpu->api, gpu->api->synchronize(), "cuCtxSynchronize", err);
    if (r == 0)
        r = keep(gpu, options, words * sizeof(uint32_t), err);
    return r < 0 ? r : cuda_gpu_count_wrong(gpu, at, words, CUDA_PATTERN_SEED, ret_wrong, &first, err);
}

int probe_hold(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct cuda_gpu gpu;
    cuda_pointer at = 0;
    uint64_t bytes = options->memory_bytes > 0 ? options->memory_bytes : HOLD_BYTES, wrong = 0;
    int r = cuda_gpu_open(api, (int)options->gpu, &gpu, &err);
    if (r < 0)
        return probe_failed(&err);
    r = cuda_check(api, api->allocate(&at, bytes), "cuMemAlloc", &err);
    if (r == 0)
        r = hold(&gpu, options, at, bytes / sizeof(uint32_t), &wrong, &err);
    if (r == 0)
        print(json_pack(
            "{s:s, s:I}", "result", wrong == 0 ? "passed" : "failed", "wrong_words", (json_int_t)wrong));
    give_back(&gpu, at);
    return r < 0 ? probe_failed(&err) : wrong == 0 ? PROBE_OK : PROBE_WRONG;
}

/* The words of PyTorch, which a scheduler looks for in the output of a job. */
int probe_need(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct cuda_gpu gpu;
    cuda_pointer at = 0;
    size_t free_bytes = 0, total = 0;
    uint64_t bytes = options->memory_bytes > 0 ? options->memory_bytes : HOLD_BYTES;
    int r = cuda_gpu_open(api, (int)options->gpu, &gpu, &err);
    if (r < 0)
        return probe_failed(&err);
    int code = api->allocate(&at, bytes);
    (void)api->memory(&free_bytes, &total);
    if (code == CUDA_OUT_OF_MEMORY)
        (void)fprintf(stderr,
            "torch.OutOfMemoryError: %s out of memory. Tried to allocate %.2f MiB. GPU %d has a total "
            "capacity of %.2f MiB of which %.2f MiB is free.\n",
            cuda_api_word(api), (double)bytes / MIB, (int)options->gpu, (double)total / MIB,
            (double)free_bytes / MIB);
    r = cuda_check(api, code, "cuMemAlloc", &err);
    if (r == 0)
        print(json_pack("{s:s, s:I}", "result", "passed", "bytes", (json_int_t)bytes));
    give_back(&gpu, at);
    return r < 0 ? probe_failed(&err) : PROBE_OK;
}

int probe_fault(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct cuda_gpu gpu;
    int r = cuda_gpu_open(api, (int)options->gpu, &gpu, &err);
    if (r == 0)
        r = cuda_gpu_fill(&gpu, BAD_ADDRESS, 1, 0, &err);
    if (r < 0)
        return probe_failed(&err);
    r = cuda_check(api, api->synchronize(), "cuCtxSynchronize", &err);
    if (r < 0)
        return probe_failed(&err);
    print(json_pack("{s:s}", "result", "passed")); // the driver let it pass
    return PROBE_OK;
}

int probe_managed(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct cuda_gpu gpu;
    cuda_pointer at = 0;
    int r = cuda_gpu_open(api, (int)options->gpu, &gpu, &err);
    if (r < 0)
        return probe_failed(&err);
    if (api->allocate_managed == NULL) {
        print(json_pack("{s:s, s:s}", "result", "skipped", "error", "the driver gives no such memory"));
        cuda_gpu_close(&gpu);
        return PROBE_SKIPPED;
    }
    r = cuda_check(api, api->allocate_managed(&at, MANAGED_WORDS * sizeof(uint32_t), CUDA_MANAGED_GLOBAL),
        "cuMemAllocManaged", &err);
    if (r == 0)
        r = cuda_gpu_fill(&gpu, at, MANAGED_WORDS, CUDA_PATTERN_SEED, &err);
    if (r == 0)
        r = cuda_check(api, api->synchronize(), "cuCtxSynchronize", &err);
    if (r == 0)
        r = keep(&gpu, options, MANAGED_WORDS * sizeof(uint32_t), &err);
    /* Word 0 of the pattern is the seed itself: read by this side, through the same address. */
    bool is_right = r == 0 && *(const uint32_t *)(uintptr_t)at == CUDA_PATTERN_SEED;
    if (r == 0)
        print(json_pack("{s:s}", "result", is_right ? "passed" : "failed"));
    give_back(&gpu, at);
    return r < 0 ? probe_failed(&err) : is_right ? PROBE_OK : PROBE_WRONG;
}

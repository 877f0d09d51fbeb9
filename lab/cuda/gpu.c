/* SPDX-License-Identifier: MIT */
/*
 * With CUDA the programs are PTX, with HIP their source (hip.c). The PTX is written for the oldest GPUs and
 * drivers that still run; the driver translates it for newer ones. Should a future driver refuse that target,
 * the next of the table is tried with the same text.
 */
#include "lab/cuda/gpu.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "lab/cuda/kernels.h"

#define BLOCK           256U // threads
#define BLOCKS_PER_UNIT 8U
#define TILE            16U  // as in kernels.cu
#define UNITS           128U // where the driver does not say how many processors a GPU has

static const char *const targets[] = { ".version 4.0\n.target sm_50\n.address_size 64\n",
    ".version 6.3\n.target sm_75\n.address_size 64\n", ".version 7.8\n.target sm_90\n.address_size 64\n" };

int cuda_check(const struct cuda_api *api, int code, const char *call, struct error *err)
{
    if (code == CUDA_SUCCESS)
        return 0;
    return error_set(
        err, -EIO, "%s failed: %s (%d)", cuda_api_call(api, call), cuda_api_describe(api, code), code);
}

/* HIP has the digits of the text themselves. */
static bool has_digits(const struct cuda_uuid *uuid)
{
    size_t n = 0;
    while (n < CUDA_UUID_SIZE && isxdigit(uuid->bytes[n]))
        n++;
    return n == CUDA_UUID_SIZE;
}

static void write_uuid(const struct cuda_uuid *uuid, char *text, size_t size)
{
    const unsigned char *b = uuid->bytes;
    if (has_digits(uuid)) {
        (void)snprintf(text, size, "GPU-%.*s", CUDA_UUID_SIZE, (const char *)b);
        return;
    }
    (void)snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
        b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

int cuda_describe(const struct cuda_api *api, int number, struct cuda_description *ret, struct error *err)
{
    cuda_device device = 0;
    struct cuda_uuid uuid = { 0 };
    struct cuda_description found = { 0 };
    size_t bytes = 0;
    int r = cuda_check(api, api->device(&device, number), "cuDeviceGet", err);
    if (r == 0)
        r = cuda_check(api, api->name(found.name, sizeof(found.name) - 1, device), "cuDeviceGetName", err);
    if (r == 0)
        r = cuda_check(api, api->total(&bytes, device), "cuDeviceTotalMem", err);
    if (r < 0)
        return r;
    found.memory_bytes = bytes;
    if (api->uuid != NULL && api->uuid(&uuid, device) == CUDA_SUCCESS)
        write_uuid(&uuid, found.uuid, sizeof(found.uuid));
    if (api->bus_id == NULL || api->bus_id(found.pci, CUDA_BUS_ID_SIZE, device) != CUDA_SUCCESS)
        found.pci[0] = '\0';
    for (char *c = found.pci; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    if (api->capability != NULL) {
        (void)api->capability(&found.major, &found.minor, device);
    } else if (api->attribute != NULL) {
        (void)api->attribute(&found.major, CUDA_ATTRIBUTE_MAJOR, device);
        (void)api->attribute(&found.minor, CUDA_ATTRIBUTE_MINOR, device);
    }
    *ret = found;
    return 0;
}

static int load_ptx(struct cuda_gpu *gpu, struct error *err)
{
    int r = -EIO;
    for (size_t i = 0; r < 0 && i < sizeof(targets) / sizeof(targets[0]); i++) {
        _cleanup_free_ char *text = xasprintf("%s%s", targets[i], kernels_ptx);
        r = cuda_check(gpu->api, gpu->api->module_load(&gpu->module, text), "cuModuleLoadData", err);
    }
    return r;
}

static int load_translated(struct cuda_gpu *gpu, struct error *err)
{
    _cleanup_free_ char *code = NULL;
    size_t bytes;
    int r = cuda_hip_translate(gpu->api, NULL, &code, &bytes, err);
    return r < 0 ? r
                 : cuda_check(gpu->api, gpu->api->module_load(&gpu->module, code), "cuModuleLoadData", err);
}

static int load_kernels(struct cuda_gpu *gpu, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    const struct {
        cuda_function *function;
        const char *name;
    } kernels[] = { { &gpu->fill, "mgpu_fill" }, { &gpu->check, "mgpu_check" },
        { &gpu->multiply, "mgpu_multiply" }, { &gpu->spin, "mgpu_spin" } };
    int r = api->runtime == RUNTIME_HIP ? load_translated(gpu, err) : load_ptx(gpu, err);
    for (size_t i = 0; r == 0 && i < sizeof(kernels) / sizeof(kernels[0]); i++)
        r = cuda_check(api, api->module_function(kernels[i].function, gpu->module, kernels[i].name),
            "cuModuleGetFunction", err);
    return r;
}

/* Calls of this thread are for that GPU from here on. */
static int use(struct cuda_gpu *gpu, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    if (api->device_set != NULL)
        return cuda_check(api, api->device_set(gpu->device), "hipSetDevice", err);
    int r = cuda_check(api, api->context_retain(&gpu->context, gpu->device), "cuDevicePrimaryCtxRetain", err);
    return r < 0 ? r : cuda_check(api, api->context_set(gpu->context), "cuCtxSetCurrent", err);
}

int cuda_gpu_open(const struct cuda_api *api, int number, struct cuda_gpu *ret, struct error *err)
{
    struct cuda_gpu gpu = { .api = api };
    int processors = 0;
    size_t bytes = 0;
    int r = cuda_check(api, api->device(&gpu.device, number), "cuDeviceGet", err);
    if (r < 0)
        return r;
    r = use(&gpu, err);
    if (r == 0)
        r = load_kernels(&gpu, err);
    if (r < 0) {
        cuda_gpu_close(&gpu);
        return r;
    }
    if (api->attribute != NULL)
        (void)api->attribute(&processors, CUDA_ATTRIBUTE_PROCESSORS, gpu.device);
    (void)api->total(&bytes, gpu.device);
    gpu.memory_bytes = bytes;
    gpu.processors = processors > 0 ? (unsigned int)processors : UNITS;
    *ret = gpu;
    return 0;
}

void cuda_gpu_close(struct cuda_gpu *gpu)
{
    if (gpu->context != NULL)
        (void)gpu->api->context_release(gpu->device);
    *gpu = (struct cuda_gpu){ 0 };
}

static int run(struct cuda_gpu *gpu, cuda_function kernel, void **parameters, struct error *err)
{
    return cuda_check(gpu->api,
        gpu->api->launch(
            kernel, gpu->processors * BLOCKS_PER_UNIT, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL),
        "cuLaunchKernel", err);
}

int cuda_gpu_fill(struct cuda_gpu *gpu, cuda_pointer at, uint64_t words, uint32_t seed, struct error *err)
{
    void *parameters[] = { &at, &words, &seed };
    return run(gpu, gpu->fill, parameters, err);
}

int cuda_gpu_count_wrong(struct cuda_gpu *gpu, cuda_pointer at, uint64_t words, uint32_t seed,
    uint64_t *ret_wrong, uint64_t *ret_first, struct error *err)
{
    const struct cuda_api *api = gpu->api;
    uint64_t result[2] = { 0, UINT64_MAX };
    cuda_pointer on_gpu = 0;
    void *parameters[] = { &at, &words, &seed, &on_gpu };
    int r = cuda_check(api, api->allocate(&on_gpu, sizeof(result)), "cuMemAlloc", err);
    if (r < 0)
        return r;
    r = cuda_check(api, api->copy_in(on_gpu, result, sizeof(result)), "cuMemcpyHtoD", err);
    if (r == 0)
        r = run(gpu, gpu->check, parameters, err);
    if (r == 0)
        r = cuda_check(api, api->copy_out(result, on_gpu, sizeof(result)), "cuMemcpyDtoH", err);
    (void)api->release(on_gpu);
    if (r == 0) {
        *ret_wrong = result[0];
        *ret_first = result[1];
    }
    return r;
}

int cuda_gpu_multiply(struct cuda_gpu *gpu, cuda_pointer left, cuda_pointer right, cuda_pointer product,
    uint32_t n, struct error *err)
{
    void *parameters[] = { &left, &right, &product, &n };
    return cuda_check(gpu->api,
        gpu->api->launch(gpu->multiply, n / TILE, n / TILE, 1, TILE, TILE, 1, 0, NULL, parameters, NULL),
        "cuLaunchKernel", err);
}

int cuda_gpu_spin(struct cuda_gpu *gpu, uint64_t nanoseconds, struct error *err)
{
    void *parameters[] = { &nanoseconds };
    int r = cuda_check(gpu->api, gpu->api->launch(gpu->spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
        "cuLaunchKernel", err);
    return r < 0 ? r : cuda_check(gpu->api, gpu->api->synchronize(), "cuCtxSynchronize", err);
}

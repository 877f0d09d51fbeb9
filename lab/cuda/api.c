/* SPDX-License-Identifier: MIT */
/*
 * The names of each function are a table. A name ends in the version of the function that has the declaration
 * of api.h: drivers keep old versions for ever. The library is where the loader finds it; containers mount it
 * in a few other folders, which are a table too.
 */
#include "lab/cuda/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const char *const files[] = { CUDA_LIBRARY, "/usr/local/nvidia/lib64/" CUDA_LIBRARY,
    "/usr/lib/x86_64-linux-gnu/" CUDA_LIBRARY, "/usr/lib64/" CUDA_LIBRARY, "/usr/lib/wsl/lib/" CUDA_LIBRARY,
    "/run/opengl-driver/lib/" CUDA_LIBRARY };

static const struct {
    size_t offset;
    bool is_required;
    const char *names[2]; // newest first
} symbols[] = {
#define SYMBOL(member, required, ...)                                                                        \
    {                                                                                                        \
        offsetof(struct cuda_api, member), required,                                                         \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
    SYMBOL(init, true, "cuInit"),
    SYMBOL(version, true, "cuDriverGetVersion"),
    SYMBOL(error_name, false, "cuGetErrorName"),
    SYMBOL(count, true, "cuDeviceGetCount"),
    SYMBOL(device, true, "cuDeviceGet"),
    SYMBOL(name, true, "cuDeviceGetName"),
    SYMBOL(uuid, false, "cuDeviceGetUuid_v2", "cuDeviceGetUuid"),
    SYMBOL(bus_id, false, "cuDeviceGetPCIBusId"),
    SYMBOL(total, true, "cuDeviceTotalMem_v2"),
    SYMBOL(attribute, true, "cuDeviceGetAttribute"),
    SYMBOL(context_retain, true, "cuDevicePrimaryCtxRetain"),
    SYMBOL(context_release, true, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"),
    SYMBOL(context_set, true, "cuCtxSetCurrent"),
    SYMBOL(synchronize, true, "cuCtxSynchronize"),
    SYMBOL(memory, true, "cuMemGetInfo_v2"),
    SYMBOL(allocate, true, "cuMemAlloc_v2"),
    SYMBOL(allocate_managed, false, "cuMemAllocManaged"),
    SYMBOL(release, true, "cuMemFree_v2"),
    SYMBOL(allocate_host, true, "cuMemAllocHost_v2"),
    SYMBOL(release_host, true, "cuMemFreeHost"),
    SYMBOL(copy_in, true, "cuMemcpyHtoD_v2"),
    SYMBOL(copy_out, true, "cuMemcpyDtoH_v2"),
    SYMBOL(copy_on, true, "cuMemcpyDtoD_v2"),
    SYMBOL(module_load, true, "cuModuleLoadData"),
    SYMBOL(module_function, true, "cuModuleGetFunction"),
    SYMBOL(launch, true, "cuLaunchKernel"),
    SYMBOL(event_create, true, "cuEventCreate"),
    SYMBOL(event_record, true, "cuEventRecord"),
    SYMBOL(event_wait, true, "cuEventSynchronize"),
    SYMBOL(event_elapsed, true, "cuEventElapsedTime"),
    SYMBOL(event_destroy, true, "cuEventDestroy_v2"),
    SYMBOL(stream_create, false, "cuStreamCreate"),
    SYMBOL(stream_wait, false, "cuStreamSynchronize"),
    SYMBOL(peer_access, false, "cuDeviceCanAccessPeer"),
    SYMBOL(peer_attribute, false, "cuDeviceGetP2PAttribute"),
    SYMBOL(peer_enable, false, "cuCtxEnablePeerAccess"),
    SYMBOL(copy_peer, false, "cuMemcpyPeerAsync"),
    SYMBOL(checkpoint_lock, false, "cuCheckpointProcessLock"),
};

static int load_symbols(struct cuda_api *api, struct error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = NULL;
        for (size_t n = 0; symbol == NULL && n < 2 && symbols[i].names[n] != NULL; n++)
            symbol = dlsym(api->library, symbols[i].names[n]);
        if (symbol == NULL && symbols[i].is_required)
            return error_set(err, -ENODEV, "the driver's " CUDA_LIBRARY " has no %s", symbols[i].names[0]);
        memcpy((char *)api + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

int cuda_api_load(const char *path, struct cuda_api *ret, struct error *err)
{
    *ret = (struct cuda_api){ 0 };
    if (path != NULL)
        ret->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; path == NULL && ret->library == NULL && i < sizeof(files) / sizeof(files[0]); i++)
        ret->library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (ret->library == NULL && path != NULL)
        return error_set(err, -ENODEV, "cannot load %s: %s", path, dlerror());
    if (ret->library == NULL)
        return error_set(err, -ENODEV, "no " CUDA_LIBRARY " found: the NVIDIA driver is not installed here");
    int r = load_symbols(ret, err);
    if (r < 0)
        cuda_api_unload(ret);
    return r;
}

void cuda_api_unload(struct cuda_api *api)
{
    if (api->library != NULL)
        (void)dlclose(api->library);
    *api = (struct cuda_api){ 0 };
}

const char *cuda_api_describe(const struct cuda_api *api, int code)
{
    const char *name = NULL;
    if (api->error_name == NULL || api->error_name(code, &name) != CUDA_SUCCESS || name == NULL)
        return "an unknown CUDA error";
    return name;
}

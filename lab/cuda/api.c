/* SPDX-License-Identifier: MIT */
/*
 * The names of each function are a table. A name ends in the version of the function that has the declaration
 * of api.h: drivers keep old versions for ever. The library is where the loader finds it, or in one of a few
 * other folders: containers mount CUDA's there, and ROCm installs HIP's there.
 */
#include "lab/cuda/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define NAMES_MAX   2
#define FILES_MAX   6
#define OF_CUDA     1U
#define OF_HIP      2U
#define BOTH        (OF_CUDA | OF_HIP)
#define HIP_LIBRARY "libamdhip64.so"

static const struct {
    const char *word, *library, *missing;
    const char *files[FILES_MAX];
} runtimes[RUNTIMES] = {
    [RUNTIME_CUDA] = { "CUDA", CUDA_LIBRARY, "the NVIDIA driver is not installed here",
        { CUDA_LIBRARY, "/usr/local/nvidia/lib64/" CUDA_LIBRARY, "/usr/lib/x86_64-linux-gnu/" CUDA_LIBRARY,
            "/usr/lib64/" CUDA_LIBRARY, "/usr/lib/wsl/lib/" CUDA_LIBRARY,
            "/run/opengl-driver/lib/" CUDA_LIBRARY } },
    [RUNTIME_HIP] = { "HIP", HIP_LIBRARY, "ROCm is not installed here",
        { HIP_LIBRARY ".7", HIP_LIBRARY ".6", HIP_LIBRARY ".5", HIP_LIBRARY, "/opt/rocm/lib/" HIP_LIBRARY } },
};

static const char *const translators[] = { "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so",
    "/opt/rocm/lib/libhiprtc.so" };

#define HIP(...)                                                                                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define SYMBOL(member, required, hip_names, ...)                                                             \
    {                                                                                                        \
        offsetof(struct cuda_api, member), required,                                                         \
        {                                                                                                    \
            [RUNTIME_CUDA] = { __VA_ARGS__ }, [RUNTIME_HIP] = hip_names                                      \
        }                                                                                                    \
    }
static const struct {
    size_t offset;
    unsigned int required;                  // by OF_CUDA, OF_HIP
    const char *names[RUNTIMES][NAMES_MAX]; // newest first; none: the library has no such function
} symbols[] = {
    SYMBOL(init, BOTH, HIP("hipInit"), "cuInit"),
    SYMBOL(version, BOTH, HIP("hipDriverGetVersion"), "cuDriverGetVersion"),
    SYMBOL(error_name, 0, HIP(NULL), "cuGetErrorName"),
    SYMBOL(count, BOTH, HIP("hipGetDeviceCount"), "cuDeviceGetCount"),
    SYMBOL(device, BOTH, HIP("hipDeviceGet"), "cuDeviceGet"),
    SYMBOL(name, BOTH, HIP("hipDeviceGetName"), "cuDeviceGetName"),
    SYMBOL(uuid, 0, HIP("hipDeviceGetUuid"), "cuDeviceGetUuid_v2", "cuDeviceGetUuid"),
    SYMBOL(bus_id, 0, HIP("hipDeviceGetPCIBusId"), "cuDeviceGetPCIBusId"),
    SYMBOL(total, BOTH, HIP("hipDeviceTotalMem"), "cuDeviceTotalMem_v2"),
    SYMBOL(attribute, OF_CUDA, HIP(NULL), "cuDeviceGetAttribute"),
    SYMBOL(context_retain, OF_CUDA, HIP(NULL), "cuDevicePrimaryCtxRetain"),
    SYMBOL(context_release, OF_CUDA, HIP(NULL), "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"),
    SYMBOL(context_set, OF_CUDA, HIP(NULL), "cuCtxSetCurrent"),
    SYMBOL(synchronize, BOTH, HIP("hipDeviceSynchronize"), "cuCtxSynchronize"),
    SYMBOL(memory, BOTH, HIP("hipMemGetInfo"), "cuMemGetInfo_v2"),
    SYMBOL(allocate, BOTH, HIP("hipMalloc"), "cuMemAlloc_v2"),
    SYMBOL(allocate_managed, 0, HIP("hipMallocManaged"), "cuMemAllocManaged"),
    SYMBOL(release, BOTH, HIP("hipFree"), "cuMemFree_v2"),
    SYMBOL(allocate_host, BOTH, HIP("hipMemAllocHost", "hipMallocHost"), "cuMemAllocHost_v2"),
    SYMBOL(release_host, BOTH, HIP("hipHostFree", "hipFreeHost"), "cuMemFreeHost"),
    SYMBOL(copy_in, BOTH, HIP("hipMemcpyHtoD"), "cuMemcpyHtoD_v2"),
    SYMBOL(copy_out, BOTH, HIP("hipMemcpyDtoH"), "cuMemcpyDtoH_v2"),
    SYMBOL(copy_on, BOTH, HIP("hipMemcpyDtoD"), "cuMemcpyDtoD_v2"),
    SYMBOL(module_load, BOTH, HIP("hipModuleLoadData"), "cuModuleLoadData"),
    SYMBOL(module_function, BOTH, HIP("hipModuleGetFunction"), "cuModuleGetFunction"),
    SYMBOL(launch, BOTH, HIP("hipModuleLaunchKernel"), "cuLaunchKernel"),
    SYMBOL(event_create, BOTH, HIP("hipEventCreateWithFlags"), "cuEventCreate"),
    SYMBOL(event_record, BOTH, HIP("hipEventRecord"), "cuEventRecord"),
    SYMBOL(event_wait, BOTH, HIP("hipEventSynchronize"), "cuEventSynchronize"),
    SYMBOL(event_elapsed, BOTH, HIP("hipEventElapsedTime"), "cuEventElapsedTime"),
    SYMBOL(event_destroy, BOTH, HIP("hipEventDestroy"), "cuEventDestroy_v2"),
    SYMBOL(stream_create, 0, HIP(NULL), "cuStreamCreate"),
    SYMBOL(stream_wait, 0, HIP(NULL), "cuStreamSynchronize"),
    SYMBOL(peer_access, 0, HIP(NULL), "cuDeviceCanAccessPeer"),
    SYMBOL(peer_attribute, 0, HIP(NULL), "cuDeviceGetP2PAttribute"),
    SYMBOL(peer_enable, 0, HIP(NULL), "cuCtxEnablePeerAccess"),
    SYMBOL(copy_peer, 0, HIP(NULL), "cuMemcpyPeerAsync"),
    SYMBOL(checkpoint_lock, 0, HIP(NULL), "cuCheckpointProcessLock"),
    SYMBOL(error_word, OF_HIP, HIP("hipGetErrorName"), NULL),
    SYMBOL(capability, 0, HIP("hipDeviceComputeCapability"), NULL),
    SYMBOL(device_set, OF_HIP, HIP("hipSetDevice"), NULL),
};

static const struct {
    size_t offset;
    const char *name;
} of_translator[] = {
    { offsetof(struct hip_translator, create), "hiprtcCreateProgram" },
    { offsetof(struct hip_translator, compile), "hiprtcCompileProgram" },
    { offsetof(struct hip_translator, log_size), "hiprtcGetProgramLogSize" },
    { offsetof(struct hip_translator, log), "hiprtcGetProgramLog" },
    { offsetof(struct hip_translator, code_size), "hiprtcGetCodeSize" },
    { offsetof(struct hip_translator, code), "hiprtcGetCode" },
    { offsetof(struct hip_translator, destroy), "hiprtcDestroyProgram" },
};

static void *find_symbol(void *library, const char *const names[NAMES_MAX])
{
    void *symbol = NULL;
    for (size_t n = 0; symbol == NULL && n < NAMES_MAX && names[n] != NULL; n++)
        symbol = dlsym(library, names[n]);
    return symbol;
}

static int load_symbols(struct cuda_api *api, struct error *err)
{
    unsigned int own = api->runtime == RUNTIME_HIP ? OF_HIP : OF_CUDA;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const char *const *names = symbols[i].names[api->runtime];
        void *symbol = find_symbol(api->library, names);
        if (symbol == NULL && (symbols[i].required & own) != 0)
            return error_set(err, -ENODEV, "%s has no %s", runtimes[api->runtime].library, names[0]);
        memcpy((char *)api + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

/* It is a part of HIP's library up to ROCm 6, and separate since. */
static int load_translator(struct cuda_api *api, struct error *err)
{
    struct hip_translator *translator = &api->translator;
    void *from = dlsym(api->library, of_translator[0].name) != NULL ? api->library : NULL;
    for (size_t i = 0; from == NULL && i < sizeof(translators) / sizeof(translators[0]); i++)
        from = translator->library = dlopen(translators[i], RTLD_NOW | RTLD_LOCAL);
    if (from == NULL)
        return error_set(err, -ENODEV, "no libhiprtc.so found, which translates programs for AMD GPUs");
    for (size_t i = 0; i < sizeof(of_translator) / sizeof(of_translator[0]); i++) {
        void *symbol = dlsym(from, of_translator[i].name);
        if (symbol == NULL)
            return error_set(err, -ENODEV, "HIP's translator has no %s", of_translator[i].name);
        memcpy((char *)translator + of_translator[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

int cuda_api_load(enum gpu_runtime runtime, const char *path, struct cuda_api *ret, struct error *err)
{
    const char *const *files = runtimes[runtime].files;
    *ret = (struct cuda_api){ .runtime = runtime };
    if (path != NULL)
        ret->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; path == NULL && ret->library == NULL && i < FILES_MAX && files[i] != NULL; i++)
        ret->library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (ret->library == NULL && path != NULL)
        return error_set(err, -ENODEV, "cannot load %s: %s", path, dlerror());
    if (ret->library == NULL)
        return error_set(
            err, -ENODEV, "no %s found: %s", runtimes[runtime].library, runtimes[runtime].missing);
    int r = load_symbols(ret, err);
    if (r == 0 && runtime == RUNTIME_HIP)
        r = load_translator(ret, err);
    if (r < 0)
        cuda_api_unload(ret);
    return r;
}

void cuda_api_unload(struct cuda_api *api)
{
    if (api->translator.library != NULL)
        (void)dlclose(api->translator.library);
    if (api->library != NULL)
        (void)dlclose(api->library);
    *api = (struct cuda_api){ .runtime = api->runtime };
}

const char *cuda_api_describe(const struct cuda_api *api, int code)
{
    const char *name = NULL;
    if (api->error_word != NULL)
        name = api->error_word(code);
    else if (api->error_name != NULL && api->error_name(code, &name) != CUDA_SUCCESS)
        name = NULL;
    return name != NULL ? name : "an unknown error";
}

const char *cuda_api_call(const struct cuda_api *api, const char *call)
{
    size_t length = strlen(call);
    for (size_t i = 0; api->runtime != RUNTIME_CUDA && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const char *name = symbols[i].names[RUNTIME_CUDA][0], *own = symbols[i].names[api->runtime][0];
        if (name != NULL && own != NULL && strncmp(name, call, length) == 0 &&
            (name[length] == '\0' || name[length] == '_'))
            return own;
    }
    return call;
}

const char *cuda_api_word(const struct cuda_api *api)
{
    return runtimes[api->runtime].word;
}

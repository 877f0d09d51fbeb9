/* SPDX-License-Identifier: MIT */
#include "agent/park/cuda_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    size_t offset;
    const char *name;
} symbols[] = {
    { offsetof(struct cuda_api, init), "cuInit" },
    { offsetof(struct cuda_api, version), "cuDriverGetVersion" },
    { offsetof(struct cuda_api, error_name), "cuGetErrorName" },
    { offsetof(struct cuda_api, state), "cuCheckpointProcessGetState" },
    { offsetof(struct cuda_api, lock), "cuCheckpointProcessLock" },
    { offsetof(struct cuda_api, checkpoint), "cuCheckpointProcessCheckpoint" },
    { offsetof(struct cuda_api, restore), "cuCheckpointProcessRestore" },
    { offsetof(struct cuda_api, unlock), "cuCheckpointProcessUnlock" },
};

static int too_old(int version, struct error *err)
{
    return error_set(err, -EOPNOTSUPP,
        "the NVIDIA driver supports CUDA %d.%d; parking needs %d.%d (driver 580) or newer", version / 1000,
        version % 1000 / 10, CUDA_VERSION_PARKABLE / 1000, CUDA_VERSION_PARKABLE % 1000 / 10);
}

int cuda_api_load(const char *path, struct cuda_api *ret, struct error *err)
{
    struct cuda_api api = { 0 };
    int version = 0;
    api.handle = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (api.handle == NULL)
        return error_set(err, -EOPNOTSUPP, "the CUDA driver library cannot be loaded: %.200s", dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(api.handle, symbols[i].name);
        /* POSIX defines no other conversion between object and function pointers. */
        memcpy((char *)&api + symbols[i].offset, &symbol, sizeof(symbol));
    }
    if (api.init == NULL || api.version == NULL || api.version(&version) != CUDA_OK)
        return error_set(err, -EOPNOTSUPP, "the CUDA driver library does not report its version");
    if (version < CUDA_VERSION_PARKABLE)
        return too_old(version, err);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol;
        memcpy(&symbol, (char *)&api + symbols[i].offset, sizeof(symbol));
        if (symbol == NULL)
            return error_set(err, -EOPNOTSUPP, "the CUDA driver library has no %s", symbols[i].name);
    }
    int error = api.init(0);
    if (error != CUDA_OK)
        return error_set(
            err, -EOPNOTSUPP, "the CUDA driver cannot be initialized: %s", cuda_api_error(&api, error));
    *ret = api;
    return 0;
}

const char *cuda_api_error(const struct cuda_api *api, int error)
{
    static char text[32];
    const char *name = NULL;
    if (api->error_name(error, &name) == CUDA_OK && name != NULL)
        return name;
    (void)snprintf(text, sizeof(text), "error %d", error);
    return text;
}

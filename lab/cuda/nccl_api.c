/* SPDX-License-Identifier: MIT */
#include "lab/cuda/nccl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const struct {
    size_t offset;
    const char *name;
} symbols[] = {
#define SYMBOL(member, name)                                                                                 \
    {                                                                                                        \
        offsetof(struct nccl_api, member), name                                                              \
    }
    SYMBOL(version, "ncclGetVersion"),
    SYMBOL(error_text, "ncclGetErrorString"),
    SYMBOL(init_all, "ncclCommInitAll"),
    SYMBOL(destroy, "ncclCommDestroy"),
    SYMBOL(all_reduce, "ncclAllReduce"),
    SYMBOL(group_start, "ncclGroupStart"),
    SYMBOL(group_end, "ncclGroupEnd"),
};

int nccl_api_load(const char *path, struct nccl_api *ret, struct error *err)
{
    *ret = (struct nccl_api){ .library = dlopen(path != NULL ? path : NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL) };
    if (ret->library == NULL)
        return error_set(err, -ENODEV, "there is no NCCL: %s", dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(ret->library, symbols[i].name);
        if (symbol == NULL) {
            nccl_api_unload(ret);
            return error_set(err, -ENODEV, "the library of NCCL has no %s", symbols[i].name);
        }
        memcpy((char *)ret + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

void nccl_api_unload(struct nccl_api *api)
{
    if (api->library != NULL)
        (void)dlclose(api->library);
    *api = (struct nccl_api){ 0 };
}

int nccl_check(const struct nccl_api *api, int code, const char *call, struct error *err)
{
    return code == 0 ? 0 : error_set(err, -EIO, "%s failed: %s (%d)", call, api->error_text(code), code);
}

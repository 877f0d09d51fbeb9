/* SPDX-License-Identifier: MIT */
#include "compat/stepd/pmix_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define LIBRARY "libpmix.so.2"

static struct pmix_api api;

static const struct {
    const char *name;
    void *function; // where the address is stored
} symbols[] = {
    { "PMIx_server_init", &api.server_init },
    { "PMIx_server_finalize", &api.server_finalize },
    { "PMIx_server_register_nspace", &api.register_nspace },
    { "PMIx_server_register_client", &api.register_client },
    { "PMIx_server_setup_fork", &api.setup_fork },
    { "PMIx_server_dmodex_request", &api.dmodex_request },
    { "PMIx_Error_string", &api.error_string },
};

int pmix_api_load(const struct pmix_api **ret, struct error *err)
{
    static void *library;
    if (library == NULL)
        library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL); // its plugins expect its symbols to be global
    if (library == NULL)
        return error_set(err, -ENOENT, "pmix needs " LIBRARY " (Debian: libpmix2), which cannot be loaded");
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *function = dlsym(library, symbols[i].name);
        if (function == NULL)
            return error_set(err, -ENOSYS, "pmix needs %s, which " LIBRARY " does not have", symbols[i].name);
        memcpy(symbols[i].function, &function, sizeof(function));
    }
    *ret = &api;
    return 0;
}

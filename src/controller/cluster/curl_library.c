/* SPDX-License-Identifier: MIT */
#include "controller/cluster/curl_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static struct curl_library library;

/* The two common builds; Debian's have different names. */
static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

static const struct {
    const char *name;
    void *function;
} functions[] = {
    { "curl_global_init", &library.global_init },
    { "curl_easy_init", &library.easy_init },
    { "curl_easy_setopt", &library.easy_setopt },
    { "curl_easy_perform", &library.easy_perform },
    { "curl_easy_getinfo", &library.easy_getinfo },
    { "curl_easy_strerror", &library.easy_strerror },
    { "curl_easy_cleanup", &library.easy_cleanup },
    { "curl_slist_append", &library.slist_append },
    { "curl_slist_free_all", &library.slist_free_all },
};

int curl_library_load(const struct curl_library **ret, struct error *err)
{
    void *handle = NULL;
    for (size_t i = 0; handle == NULL && i < sizeof(names) / sizeof(names[0]); i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        (void)error_set(
            err, -ENOENT, "--cluster requires libcurl, which cannot be loaded: %.300s", dlerror());
        return error_hint(err, "install it: apt-get install libcurl4");
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *found = dlsym(handle, functions[i].name);
        if (found == NULL)
            return error_set(err, -ENOENT, "libcurl has no %s", functions[i].name);
        memcpy(functions[i].function, &found, sizeof(found));
    }
    if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return error_set(err, -EIO, "libcurl cannot be initialised");
    *ret = &library;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "cli/api/programs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

char *program_find(const char *name)
{
    static const char *const places[] = { "", "../libexec/mgpu/", "../sbin/", "../lib/mgpu/" };
    char self[PATH_MAX];
    const char *slash = realpath("/proc/self/exe", self) == NULL ? NULL : strrchr(self, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%.*s/%s%s", (int)(slash - self), self, places[i], name);
        if (access(path, X_OK) == 0)
            return take_ptr(path);
    }
    return xstrdup(name);
}

/* SPDX-License-Identifier: MIT */
/* The driver allocates the memory within the process that it saves, so that it counts against the process's
 * limit. */
#include "agent/park/host_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"

#define SPARE_BYTES (1ULL << 30) // reserved for everything else on the node

/* The first number after `key` in the file; false if it cannot be read. */
static bool read_number(const char *path, const char *key, uint64_t *ret)
{
    char line[256];
    bool is_found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (!is_found && fgets(line, sizeof(line), file) != NULL)
        is_found = strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%" SCNu64, ret) == 1;
    (void)fclose(file);
    return is_found;
}

static bool read_used(const struct launch_spec *spec, uint64_t *ret)
{
    static const char *const files[] = { "memory.current", "memory.usage_in_bytes" };
    for (size_t i = 0; spec->memory_cgroup != NULL && i < sizeof(files) / sizeof(files[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", spec->memory_cgroup, files[i]);
        if (read_number(path, "", ret))
            return true;
    }
    return false;
}

static int too_little(const char *what, uint64_t bytes, uint64_t room, struct error *err)
{
    char need[32], has[32];
    format_size(bytes, need, sizeof(need));
    format_size(room, has, sizeof(has));
    return error_set(err, -ENOMEM, "it uses %s of GPU memory, and %s %s for it", need, what, has);
}

int host_memory_check(const struct launch_spec *spec, uint64_t bytes, uint64_t bytes_max, struct error *err)
{
    uint64_t available_kib = 0, used = 0;
    if (bytes > bytes_max)
        return too_little("the parked jobs of its node leave (park-max)", bytes, bytes_max, err);
    if (read_number("/proc/meminfo", "MemAvailable:", &available_kib)) {
        uint64_t room = available_kib << 10;
        room = room > SPARE_BYTES ? room - SPARE_BYTES : 0;
        if (bytes > room)
            return too_little("its node has", bytes, room, err);
    }
    if (spec->memory_limit != 0 && read_used(spec, &used)) {
        uint64_t room = spec->memory_limit > used ? spec->memory_limit - used : 0;
        if (bytes > room)
            return too_little("its limit of host memory leaves", bytes, room, err);
    }
    return 0;
}

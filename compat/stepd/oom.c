/* SPDX-License-Identifier: MIT */
/*
 * The kernel increments a cgroup's counter before it kills: when a task has ended, its kill has been counted.
 * Both hierarchies are tried, because a node may have the memory controller in either.
 */
#include "compat/stepd/oom.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define TEXT_MAX 65536U
#define COUNTER  "oom_kill "

/* The number behind the counter in that file of the cgroup, or 0. */
static uint64_t read_counter(const char *root, const char *cgroup, const char *file)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s%s/%s", root, cgroup, file);
    if (file_read(AT_FDCWD, path, TEXT_MAX, &text) < 0)
        return 0;
    const char *found = strstr(buffer_text(&text), "\n" COUNTER);
    return found != NULL ? strtoull(found + 1 + strlen(COUNTER), NULL, 10) : 0;
}

uint64_t oom_kills(void)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    uint64_t kills = 0;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &text) < 0)
        return 0;
    char *rest = buffer_text(&text);
    /* "4:memory:/PATH" in v1, "0::/PATH" in v2. */
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;) {
        char *controllers = strchr(line, ':'),
             *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        if (strcmp(controllers + 1, "memory") == 0)
            kills += read_counter("/sys/fs/cgroup/memory", path, "memory.oom_control");
        else if (controllers[1] == '\0')
            kills += read_counter("/sys/fs/cgroup", path, "memory.events");
    }
    return kills;
}

bool oom_is_end(int status, uint64_t *seen)
{
    if (status == 0 || oom_kills() <= *seen)
        return false;
    (*seen)++;
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "agent/confine/name.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"

#define CHOSEN "cgroup-name" // file in the run dir

static bool is_there(const char *run_dir, const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", run_dir, name);
    return access(path, F_OK) == 0;
}

int confine_name_choose(const char *run_dir, const char *state_dir, struct error *err)
{
    struct stat st;
    if (is_there(run_dir, CHOSEN) || is_there(run_dir, "cgroup") || is_there(run_dir, "cgroup-v1"))
        return 0;
    if (stat(state_dir, &st) < 0)
        return error_set_errno(err, -errno, "cannot inspect %s", state_dir);
    const uint64_t which[] = { st.st_dev, st.st_ino };
    char name[CONFINE_NAME_SIZE];
    _cleanup_free_ char *path = xasprintf("%s/" CHOSEN, run_dir);
    uint32_t hash = crc32c(crc32c(0, run_dir, strlen(run_dir)), which, sizeof(which));
    int length = snprintf(name, sizeof(name), "mgpu.%08" PRIx32, hash);
    int r = file_write(AT_FDCWD, path, name, (size_t)length, false);
    return r < 0 ? error_set_errno(err, r, "cannot write %s", path) : 0;
}

void confine_name_read(const char *run_dir, char name[CONFINE_NAME_SIZE])
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/" CHOSEN, run_dir);
    if (file_read(AT_FDCWD, path, CONFINE_NAME_SIZE - 1, &text) == 0 && text.length > 0)
        (void)snprintf(name, CONFINE_NAME_SIZE, "%s", buffer_text(&text));
    else
        (void)snprintf(name, CONFINE_NAME_SIZE, "mgpu.%08" PRIx32, crc32c(0, run_dir, strlen(run_dir)));
}

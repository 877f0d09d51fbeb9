/* SPDX-License-Identifier: MIT */
/*
 * When an mgpud exits, its socket stays, and so does the lock beside it, which contains its process id while
 * it runs. An mgpud that is stopped empties the lock, so the file's time is that of the stop; one that is
 * killed leaves the id.
 */
#include "cli/api/absence.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system_mgpud.h"

static int64_t modified_ms(const struct stat *status)
{
    return status->st_mtim.tv_sec * INT64_C(1000) + status->st_mtim.tv_nsec / 1000000;
}

int64_t absence_wait_ms(const char *socket_path)
{
    struct stat at_socket, at_lock;
    const char *slash = strrchr(socket_path, '/');
    if (slash == NULL || lstat(socket_path, &at_socket) < 0 || !S_ISSOCK(at_socket.st_mode))
        return 0;
    _cleanup_free_ char *lock = xasprintf("%.*s/" RUN_LOCK, (int)(slash - socket_path), socket_path);
    if (stat(lock, &at_lock) < 0)
        return 0;
    int64_t now_ms = clock_wall_ms(), booted_ms = now_ms - clock_boot_ms();
    int64_t age_ms = now_ms - modified_ms(&at_lock);
    if (modified_ms(&at_lock) < booted_ms)
        return 0;
    if (at_lock.st_size > 0)
        return ABSENCE_RESTART_MS;
    return age_ms < 0 || age_ms >= ABSENCE_RESTART_MS ? 0 : ABSENCE_RESTART_MS - age_ms;
}

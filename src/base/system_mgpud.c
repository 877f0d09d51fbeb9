/* SPDX-License-Identifier: MIT */
/*
 * The run directory exists from the first start after a boot, and also while the daemon is stopped: its jobs
 * may still be running. The agent's directory in the state directory also survives a reboot.
 */
#include "base/system_mgpud.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

const char *system_mgpud_trace(void)
{
    static const char *const traces[] = { SYSTEM_RUN_DIR, SYSTEM_STATE_DIR "/node" };
    for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
        if (access(traces[i], F_OK) == 0 || errno == EACCES)
            return traces[i];
    return NULL;
}

bool is_socket_answered(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return false;
    memcpy(address.sun_path, path, strlen(path));
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* EAGAIN: so many are waiting to be accepted that we would have to wait, too. */
    return fd >= 0 &&
           (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN);
}

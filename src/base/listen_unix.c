/* SPDX-License-Identifier: MIT */
#include "base/listen_unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

#define BACKLOG 1024

int listen_unix(const char *path, mode_t mode, int *ret_fd, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path)) {
        (void)error_set(err, -ENAMETOOLONG, "the socket path %s has %zu bytes; at most %zu", path,
            strlen(path), sizeof(address.sun_path) - 1);
        return error_hint(err, "choose a shorter --run-dir");
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    (void)unlink(path); // the lock of the run directory proves that no process listens there
    mode_t saved = umask(0777 & ~mode);
    int r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    (void)umask(saved);
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r < 0)
        return error_set_errno(err, r, "cannot listen on %s", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

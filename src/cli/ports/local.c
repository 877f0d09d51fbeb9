/* SPDX-License-Identifier: MIT */
/*
 * All users of a machine can connect to its loopback address, and what is forwarded acts as the job's owner.
 * So the kernel is asked whose process has connected, as mgpud itself does.
 */
#include "cli/ports/local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/peer.h"

#define BACKLOG 128

static int listen_unix(const struct endpoint *local, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    memcpy(address.sun_path, local->path, strlen(local->path) + 1);
    mode_t before = umask(0177);
    int r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    (void)umask(before);
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    return r < 0 ? error_set_errno(err, r, "cannot listen at %s", local->path) : take_fd(&fd);
}

static int listen_tcp(struct endpoint *local, struct error *err)
{
    static const int again = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(local->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    socklen_t length = sizeof(address);
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &again, sizeof(again));
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0) {
        int code = -errno;
        (void)error_set_errno(err, code, "cannot listen on port %u of this machine", local->port);
        return code == -EADDRINUSE ? error_hint(err, "0 takes any free port: 0:PORT") : code;
    }
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return error_set_errno(err, -errno, "cannot read the port");
    local->port = ntohs(address.sin_port);
    return take_fd(&fd);
}

int local_listen(struct endpoint *local, struct error *err)
{
    return local->path != NULL ? listen_unix(local, err) : listen_tcp(local, err);
}

int local_accept(int listener, const struct endpoint *local, struct error *err)
{
    static const int at_once = 1;
    _cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
    struct peer peer = local->path != NULL ? peer_of_unix(fd) : peer_of_loopback(fd);
    if (!peer.is_known)
        return -EAGAIN; // it has left already
    if (peer.uid != getuid() && peer.uid != 0)
        return error_set(
            err, -EPERM, "refused a connection of another user of this machine (uid %u)", peer.uid);
    if (local->path == NULL)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    return take_fd(&fd);
}

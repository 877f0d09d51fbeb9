/* SPDX-License-Identifier: MIT */
/*
 * All users of a machine can connect to its loopback address, and forwarded connections act as the job's
 * owner. The kernel is therefore queried for the user of the connecting process, as in mgpud itself.
 *
 * All users can also listen there. A client that opens `localhost` may connect to ::1 as well as to
 * 127.0.0.1, and another user's program at one of them would receive data meant for the job. The port is
 * therefore bound at both.
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
#include "wire/listener_owner.h"
#include "wire/peer.h"

#define BACKLOG 128
#define TRIES   16 // attempts to find a port that is free at both addresses

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

static int listen_at(const struct sockaddr *address, socklen_t length)
{
    static const int on = 1;
    _cleanup_close_ int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    return take_fd(&fd);
}

static int refuse_port(int code, unsigned port, const char *address, struct error *err)
{
    (void)error_set_errno(err, code, "cannot listen on port %u of this machine (%s)", port, address);
    return code == -EADDRINUSE ? error_hint(err, "0 takes any free port: 0:PORT") : code;
}

/* True if the port of ::1 belongs to the caller, such as that of a job on this machine, or to root. */
static bool is_own_six(const struct sockaddr_in6 *six)
{
    uint32_t owner = 0;
    return listener_owner((const struct sockaddr *)six, &owner) && (owner == getuid() || owner == 0);
}

/* Listens at a port that is free at both addresses if none was chosen; otherwise at the chosen one. */
static int listen_once(uint16_t *port, int fds[LOCAL_SOCKETS_MAX], struct error *err)
{
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
    socklen_t length = sizeof(four);
    _cleanup_close_ int fd = listen_at((const struct sockaddr *)&four, sizeof(four));
    if (fd < 0)
        return refuse_port(fd, *port, "127.0.0.1", err);
    if (getsockname(fd, (struct sockaddr *)&four, &length) < 0)
        return error_set_errno(err, -errno, "cannot read the port");
    six.sin6_port = four.sin_port;
    fds[1] = listen_at((const struct sockaddr *)&six, sizeof(six));
    bool is_without =
        fds[1] == -EAFNOSUPPORT || fds[1] == -EADDRNOTAVAIL || (fds[1] == -EADDRINUSE && is_own_six(&six));
    if (fds[1] < 0 && !is_without)
        return refuse_port(fds[1], ntohs(four.sin_port), "::1", err);
    *port = ntohs(four.sin_port);
    fds[0] = take_fd(&fd);
    return 1 + (fds[1] >= 0);
}

static int listen_tcp(struct endpoint *local, int fds[LOCAL_SOCKETS_MAX], struct error *err)
{
    int r = listen_once(&local->port, fds, err);
    for (int i = 1; r == -EADDRINUSE && local->port == 0 && i < TRIES; i++)
        r = listen_once(&local->port, fds, err);
    return r;
}

int local_listen(struct endpoint *local, int fds[LOCAL_SOCKETS_MAX], struct error *err)
{
    if (local->path == NULL)
        return listen_tcp(local, fds, err);
    fds[0] = listen_unix(local, err);
    return fds[0] < 0 ? fds[0] : 1;
}

int local_accept(int listener, const struct endpoint *local, struct error *err)
{
    static const int at_once = 1;
    _cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
    struct peer peer = local->path != NULL ? peer_of_unix(fd) : peer_of_loopback(fd);
    if (!peer.is_known)
        return -EAGAIN; // the client has already left
    if (peer.uid != getuid() && peer.uid != 0)
        return error_set(
            err, -EPERM, "refused a connection of another user of this machine (uid %u)", peer.uid);
    if (local->path == NULL)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    return take_fd(&fd);
}

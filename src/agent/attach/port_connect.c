/* SPDX-License-Identifier: MIT */
/*
 * All users of a machine share its ports. If the job does not listen on one (yet, or any more), another user
 * can, and would receive passwords and tokens meant for the job. The owner of the listener is therefore
 * compared after connecting: root and the job's user are accepted.
 */
#include "agent/attach/port_connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/listener_owner.h"
#include "wire/peer.h"

#define CONNECT_SECONDS 5 // a listener that never accepts

static int open_socket(int family)
{
    static const struct timeval limit = { .tv_sec = CONNECT_SECONDS };
    _cleanup_close_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0) // also of connect(2)
        return -errno;
    return take_fd(&fd);
}

static int dial(const void *address, socklen_t length, int family)
{
    _cleanup_close_ int fd = open_socket(family);
    if (fd < 0)
        return fd;
    if (connect(fd, address, length) < 0)
        return errno == EAGAIN || errno == EINPROGRESS ? -ETIMEDOUT : -errno;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return take_fd(&fd);
}

static int check_owner(
    uint64_t job, uid_t uid, bool is_known, uid_t owner, const char *where, struct error *err)
{
    if (!is_known)
        return error_set(
            err, -ECONNREFUSED, "nothing listens on %s for job %" PRIu64 " any more", where, job);
    if (owner == uid || owner == 0)
        return 0;
    return error_set(err, -EPERM, "%s belongs to a process of another user (uid %u), not to job %" PRIu64,
        where, owner, job);
}

static int report(int r, uint64_t job, const char *where, struct error *err)
{
    if (r == -ECONNREFUSED || r == -ENOENT)
        return error_set(err, -ECONNREFUSED, "nothing listens on %s for job %" PRIu64, where, job);
    return error_set_errno(err, r, "cannot connect to %s for job %" PRIu64, where, job);
}

static int connect_unix(uint64_t job, uid_t uid, const char *path, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(path);
    if (path[0] != '/' || length >= sizeof(address.sun_path))
        return error_set(err, -EINVAL, "the path of a socket is absolute and has at most %zu bytes",
            sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, length + 1);
    _cleanup_close_ int fd = dial(&address, sizeof(address), AF_UNIX);
    if (fd < 0)
        return report(fd, job, path, err);
    struct peer peer = peer_of_unix(fd);
    int r = check_owner(job, uid, peer.is_known, peer.uid, path, err);
    return r < 0 ? r : take_fd(&fd);
}

static int connect_tcp(uint64_t job, uid_t uid, const struct sockaddr *address, socklen_t length,
    const char *where, struct error *err)
{
    static const int at_once = 1;
    uint32_t owner = 0;
    _cleanup_close_ int fd = dial(address, length, address->sa_family);
    if (fd < 0)
        return report(fd, job, where, err);
    bool is_known = listener_owner(address, &owner);
    int r = check_owner(job, uid, is_known, owner, where, err);
    if (r < 0)
        return r;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    return take_fd(&fd);
}

int port_connect(uint64_t job, uid_t uid, uint32_t port, const char *path, struct error *err)
{
    char where[32];
    if (port == 0 && path != NULL)
        return connect_unix(job, uid, path, err);
    if (port == 0 || port > UINT16_MAX)
        return error_set(err, -EINVAL, "there is no port %u", port);
    (void)snprintf(where, sizeof(where), "port %u", port);
    const struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    const struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback
    };
    struct error six_err = { 0 };
    int fd = connect_tcp(job, uid, (const struct sockaddr *)&four, sizeof(four), where, err);
    if (fd != -ECONNREFUSED && fd != -EPERM)
        return fd;
    /* Jupyter and others listen only on ::1 if "localhost" resolves to it; any user may then occupy
     * 127.0.0.1. */
    int six_fd = connect_tcp(job, uid, (const struct sockaddr *)&six, sizeof(six), where, &six_err);
    bool is_refused = six_fd == -ECONNREFUSED || six_fd == -EADDRNOTAVAIL || six_fd == -EAFNOSUPPORT;
    if (is_refused || (fd == -EPERM && six_fd < 0))
        return fd; // the result for the first address
    if (six_fd < 0)
        *err = six_err;
    else
        *err = (struct error){ 0 };
    return six_fd;
}

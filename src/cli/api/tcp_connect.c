/* SPDX-License-Identifier: MIT */
#include "cli/api/tcp_connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

void addresses_free(struct addrinfo **found)
{
    if (*found != NULL)
        freeaddrinfo(*found);
}

int addresses_find(const char *host, const char *port, struct addrinfo **ret)
{
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
    return getaddrinfo(host, port, &wanted, ret);
}

static int await_connection(int fd, int timeout_ms)
{
    struct pollfd wanted = { .fd = fd, .events = POLLOUT };
    int failure = 0, n = 0;
    socklen_t size = sizeof(failure);
    do
        n = poll(&wanted, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return -ETIMEDOUT;
    if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
        return -errno;
    return -failure;
}

int tcp_connect(const struct addrinfo *address, int timeout_ms, int *ret_fd)
{
    _cleanup_close_ int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int r = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : -errno;
    if (r == -EINPROGRESS)
        r = await_connection(fd, timeout_ms);
    if (r == 0 && fcntl(fd, F_SETFL, 0) < 0)
        r = -errno;
    if (r == 0)
        *ret_fd = take_fd(&fd);
    return r;
}

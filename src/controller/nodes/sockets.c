/* SPDX-License-Identifier: MIT */
#include "controller/nodes/sockets.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/address.h"
#include "wire/listener_owner.h"

#define BACKLOG 1024

static int listen_address(const struct addrinfo *address, int *ret_fd)
{
    static const int on = 1;
    _cleanup_close_ int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    static const int off = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); // "::" accepts both
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = take_fd(&fd);
    return 0;
}

/* "a program of root", or NULL. The caller frees it. */
static char *owner_of(const struct addrinfo *address)
{
    uint32_t uid = 0;
    if (!listener_owner(address->ai_addr, &uid))
        return NULL;
    const struct passwd *entry = getpwuid(uid);
    return entry != NULL ? xasprintf("a program of %s", entry->pw_name)
                         : xasprintf("a program of user %u", uid);
}

int sockets_listen_tcp(const char *option, const char *where, int *ret_fd, struct error *err)
{
    _cleanup_address_ struct address address = { 0 };
    int r = address_parse(where, NULL, &address, err);
    if (r < 0)
        return error_wrap(err, "%s", option);
    struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(address.host, address.port, &wanted, &found);
    if (failure != 0)
        return error_set(err, -EINVAL, "%s %s: %s", option, where, gai_strerror(failure));
    r = listen_address(found, ret_fd);
    _cleanup_free_ char *owner = r == -EADDRINUSE ? owner_of(found) : NULL;
    freeaddrinfo(found);
    bool is_sixless = r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL;
    if (is_sixless && strcmp(address.host, "::") == 0) { // a machine without IPv6
        _cleanup_free_ char *four = xasprintf("0.0.0.0:%s", address.port);
        return sockets_listen_tcp(option, four, ret_fd, err);
    }
    if (r == -EADDRINUSE) {
        (void)error_set(err, r, "port %s of %s is in use by %s", address.port, address.host,
            owner != NULL ? owner : "another program");
        return error_hint(err, "use another (%s %s:PORT) or none (%s none)", option, address.host, option);
    }
    return r < 0 ? error_set_errno(err, r, "cannot listen on %s", where) : 0;
}

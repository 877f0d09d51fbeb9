/* SPDX-License-Identifier: MIT */
/*
 * A port has an owner for each of its addresses, which can be any user of the machine. Resolvers, browsers
 * and sshd resolve `localhost` to ::1 as well as to 127.0.0.1 and try one after the other, so the owner of
 * either one answers.
 */
#include "controller/nodes/sockets.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "wire/address.h"
#include "wire/listener_owner.h"
#include "wire/name_trouble.h"

#define BACKLOG 1024

static char loopback_four[] = "127.0.0.1", loopback_six[] = "::1", any_four[] = "0.0.0.0", any_six[] = "::";

enum use { USE_LISTEN, USE_LISTEN_SIX_ONLY, USE_RESERVE };

static int open_address(const struct addrinfo *address, enum use use, int *ret_fd)
{
    static const int on = 1, off = 0;
    _cleanup_close_ int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (use != USE_RESERVE) // without it, no other process can bind to the address either
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->ai_family == AF_INET6) // "::" accepts both
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, use == USE_LISTEN ? &off : &on, sizeof(on));
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0)
        return -errno;
    if (use != USE_RESERVE && listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = take_fd(&fd);
    return 0;
}

/* The owner of the listener at this address. */
struct owner {
    bool is_known;
    uint32_t uid;
};

static struct owner owner_of(const struct addrinfo *address)
{
    struct owner owner = { 0 };
    owner.is_known = listener_owner(address->ai_addr, &owner.uid);
    return owner;
}

/* "a program of root". The caller frees it. */
static char *owner_text(const struct owner *owner)
{
    if (!owner->is_known)
        return xstrdup("another program");
    const struct passwd *entry = getpwuid(owner->uid);
    return entry != NULL ? xasprintf("a program of %s", entry->pw_name)
                         : xasprintf("a program of user %u", owner->uid);
}

static bool is_sixless(int r)
{
    return r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL;
}

/* On -EADDRINUSE, *ret_owner is the owner of the address. */
static int open_one(const char *option, const struct address *address, enum use use, int *ret_fd,
    struct owner *ret_owner, struct error *err)
{
    _cleanup_free_ char *where = address_text(address);
    struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(address->host, address->port, &wanted, &found);
    if (failure != 0) {
        _cleanup_free_ char *text = name_trouble_text(failure);
        return error_set(err, -EINVAL, "%s %s: %s", option, where, text);
    }
    int r = open_address(found, use, ret_fd);
    if (r == -EADDRINUSE)
        *ret_owner = owner_of(found);
    freeaddrinfo(found);
    if (r == -EADDRINUSE) {
        _cleanup_free_ char *owner = owner_text(ret_owner);
        (void)error_set(err, r, "port %s of %s is in use by %s", address->port, address->host, owner);
        return error_hint(err, "use another (%s %s:PORT) or none (%s none)", option, address->host, option);
    }
    return r < 0 ? error_set_errno(err, r, "cannot listen on %s", where) : 0;
}

/* "::" means all addresses, even on a machine without IPv6. */
static int open_single(const char *option, const struct address *address, int *ret_fd,
    struct owner *ret_owner, struct error *err)
{
    struct error six_err = { 0 };
    const struct address four = { .host = any_four, .port = address->port };
    int r = open_one(option, address, USE_LISTEN, ret_fd, ret_owner, &six_err);
    if (is_sixless(r) && strcmp(address->host, any_six) == 0)
        return open_one(option, &four, USE_LISTEN, ret_fd, ret_owner, err);
    if (r < 0 && err != NULL)
        *err = six_err;
    return r;
}

int sockets_listen_tcp(const char *option, const char *where, int *ret_fd, struct error *err)
{
    _cleanup_address_ struct address address = { 0 };
    struct owner unused;
    int r = address_parse(where, NULL, &address, err);
    return r < 0 ? error_wrap(err, "%s", option) : open_single(option, &address, ret_fd, &unused, err);
}

/* --- several addresses --- */

static bool is_stranger(const struct owner *owner, uid_t trusted_uid)
{
    return !owner->is_known || (owner->uid != 0 && owner->uid != trusted_uid && owner->uid != geteuid());
}

/* The addresses of the name `localhost`. */
static bool is_of_localhost(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, loopback_four) == 0 ||
           strcmp(host, loopback_six) == 0;
}

static int open_localhost(
    const char *option, char *port, struct sockets *sockets, struct owner *ret_owner, struct error *err)
{
    const struct address four = { .host = loopback_four, .port = port },
                         six = { .host = loopback_six, .port = port };
    int r = open_one(option, &four, USE_LISTEN, &sockets->fds[0], ret_owner, err);
    bool has_four = r == 0;
    if (!has_four && r != -EADDRNOTAVAIL)
        return r;
    r = open_one(option, &six, USE_LISTEN_SIX_ONLY, &sockets->fds[has_four], ret_owner, err);
    sockets->lacks_six = has_four && is_sixless(r);
    sockets->count = (size_t)has_four + (r == 0);
    if (!sockets->lacks_six && r < 0)
        return r;
    if (err != NULL)
        *err = (struct error){ 0 };
    return 0;
}

/* A program of another user at [::] would answer browsers that reach this machine by IPv6. It does not have
 * our certificate, so a failure is not an error. */
static void reserve_six(const char *option, char *port, struct sockets *sockets)
{
    const struct address six = { .host = any_six, .port = port };
    struct owner owner = { 0 };
    struct error err = { 0 };
    if (open_one(option, &six, USE_RESERVE, &sockets->reserved_fd, &owner, &err) == -EADDRINUSE)
        log_warning("%s; clients that use IPv6 reach that program", err.message);
}

int sockets_listen_all(const char *option, const char *where, uid_t trusted_uid, struct sockets *ret,
    bool *ret_is_stranger, struct error *err)
{
    _cleanup_address_ struct address address = { 0 };
    struct sockets made = SOCKETS_EMPTY;
    struct owner owner = { 0 };
    int r = address_parse(where, NULL, &address, err);
    if (r < 0)
        return error_wrap(err, "%s", option);
    if (is_of_localhost(address.host)) {
        r = open_localhost(option, address.port, &made, &owner, err);
    } else {
        r = open_single(option, &address, &made.fds[0], &owner, err);
        made.count = r == 0;
        if (r == 0 && strcmp(address.host, any_four) == 0)
            reserve_six(option, address.port, &made);
    }
    *ret_is_stranger = r == -EADDRINUSE && is_stranger(&owner, trusted_uid);
    if (r < 0)
        sockets_close(&made);
    else
        *ret = made;
    return r;
}

int sockets_add_six(
    const char *where, uid_t trusted_uid, struct sockets *sockets, bool *ret_is_stranger, struct error *err)
{
    _cleanup_address_ struct address address = { 0 };
    struct owner owner = { 0 };
    int r = address_parse(where, NULL, &address, err);
    if (r < 0)
        return r;
    const struct address six = { .host = loopback_six, .port = address.port };
    r = open_one("--listen", &six, USE_LISTEN_SIX_ONLY, &sockets->fds[sockets->count], &owner, err);
    *ret_is_stranger = r == -EADDRINUSE && is_stranger(&owner, trusted_uid);
    if (r < 0)
        return r;
    sockets->lacks_six = false;
    return sockets->fds[sockets->count++];
}

void sockets_close(struct sockets *sockets)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        closep(&sockets->fds[i]);
    closep(&sockets->reserved_fd);
    *sockets = (struct sockets)SOCKETS_EMPTY;
}

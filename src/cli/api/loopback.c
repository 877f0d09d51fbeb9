/* SPDX-License-Identifier: MIT */
/* The owner of the listener is queried before and after connecting, so that another process cannot have
 * listened only in between. */
#include "cli/api/loopback.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/api/tcp_connect.h"
#include "wire/listener_owner.h"
#include "wire/name_trouble.h"

static bool are_loopback(const struct addrinfo *found)
{
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        if (!listener_is_loopback(at->ai_addr))
            return false;
    return found != NULL;
}

bool loopback_is(const char *host)
{
    _cleanup_addresses_ struct addrinfo *found = NULL;
    return addresses_find(host, NULL, &found) == 0 && are_loopback(found);
}

/* Splits "http://[::1]:9123/" into its parts. */
static int read_url(const char *url, char **ret_host, char **ret_port, struct error *err)
{
    const char *start = url + strlen(LOOPBACK_SCHEME), *end = start + strcspn(start, "/");
    const char *colon = memrchr(start, ':', (size_t)(end - start));
    bool is_bracketed = start[0] == '[' && colon != NULL && colon[-1] == ']';
    if (colon == NULL || colon == start || colon + 1 == end || (end[0] == '/' && end[1] != '\0'))
        return error_set(err, -EINVAL, "'%.100s' is not " LOOPBACK_SCHEME "HOST:PORT", url);
    *ret_host = is_bracketed ? xstrndup(start + 1, (size_t)(colon - start) - 2)
                             : xstrndup(start, (size_t)(colon - start));
    *ret_port = xstrndup(colon + 1, (size_t)(end - colon) - 1);
    return 0;
}

/* Connects to a listener whose owner the kernel reports, twice the same. */
static int connect_known(const struct addrinfo *at, int timeout_ms, int *ret_fd, uid_t *ret_uid)
{
    uint32_t before = 0, after = 0;
    _cleanup_close_ int fd = -1;
    bool is_known = listener_owner(at->ai_addr, &before);
    int r = tcp_connect(at, timeout_ms, &fd);
    if (r < 0)
        return r;
    if (!is_known || !listener_owner(at->ai_addr, &after) || before != after)
        return -EPERM;
    *ret_uid = after;
    *ret_fd = take_fd(&fd);
    return 0;
}

int loopback_connect(
    const char *url, int timeout_ms, struct http_client **ret, uid_t *ret_uid, struct error *err)
{
    _cleanup_addresses_ struct addrinfo *found = NULL;
    _cleanup_free_ char *host = NULL, *port = NULL;
    int fd = -1, r = read_url(url, &host, &port, err);
    if (r < 0)
        return r;
    int failure = addresses_find(host, port, &found);
    if (failure != 0) {
        (void)name_trouble(failure, url, err);
        return error_recode(err, -EINVAL); // not -EAGAIN: waiting does not help
    }
    if (!are_loopback(found)) {
        (void)error_set(err, -EINVAL, "%s is another machine, which requires TLS", host);
        return error_hint(err, "run `mgpu token create` on that machine for its address");
    }
    r = -ECONNREFUSED;
    for (const struct addrinfo *at = found; at != NULL && r < 0 && r != -EPERM; at = at->ai_next)
        r = connect_known(at, timeout_ms, &fd, ret_uid);
    if (r == -EPERM)
        return error_set(err, r, "the kernel does not report who listens on %s", url);
    if (r < 0) {
        (void)error_set_errno(err, r, "cannot reach mgpud at %s", url);
        return -EHOSTDOWN;
    }
    *ret = http_client_adopt(fd);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Not for use in an event loop: programs that have one call this in a thread (agent/uplink/dial.h). Several
 * addresses share the available time, so that an unreachable first one does not use all of it.
 */
#include "wire/tls/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "wire/name_trouble.h"
#include "wire/tls/context.h"
#include "wire/tls/trouble.h"

#define KEEPALIVE_IDLE_S  10
#define KEEPALIVE_EVERY_S 5
#define KEEPALIVE_PROBES  4
#define PURPOSE_MAX       64U

void tls_dial_tune(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
        { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
        { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

void tls_dial_set_timeout(int fd, unsigned ms)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

/* 0, or -ETIMEDOUT. */
static int wait_for(int fd, short events, int64_t until_boot_ms)
{
    for (;;) {
        struct pollfd wanted = { .fd = fd, .events = events };
        int64_t left_ms = until_boot_ms - clock_boot_ms();
        int n = left_ms > 0 ? poll(&wanted, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms) : 0;
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

int tls_dial_resolve(const struct address *address, struct addrinfo **ret, struct error *err)
{
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG };
    _cleanup_free_ char *where = address_text(address);
    int code = getaddrinfo(address->host, address->port, &wanted, ret);
    if (code == EAI_SYSTEM)
        return trouble_of_connect(-errno, where, err);
    return code == 0 ? 0 : name_trouble(code, where, err);
}

static int connect_one(const struct addrinfo *address, int64_t until_boot_ms, int *ret_fd)
{
    _cleanup_close_ int fd =
        socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (fd < 0)
        return -errno;
    tls_dial_tune(fd);
    tls_dial_set_timeout(fd, TLS_DIAL_TIMEOUT_MS);
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0) {
        int failure = 0;
        socklen_t length = sizeof(failure);
        int r = errno == EINPROGRESS ? wait_for(fd, POLLOUT, until_boot_ms) : -errno;
        if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) == 0)
            r = -failure;
        if (r < 0)
            return r;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int tls_dial_connect(const struct addrinfo *addresses, const struct address *address, int64_t until_boot_ms,
    int *ret_fd, struct error *err)
{
    _cleanup_free_ char *where = address_text(address);
    int count = 0, r = -EHOSTUNREACH;
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next)
        count++;
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next, count--) {
        int64_t now_ms = clock_boot_ms();
        int failure = connect_one(one, now_ms + (until_boot_ms - now_ms) / count, ret_fd);
        if (failure == 0)
            return 0;
        /* If several fail, the most informative error: a machine that refuses is at least reachable. */
        if (r != -ECONNREFUSED)
            r = failure;
    }
    return trouble_of_connect(r, where, err);
}

/* After an unsuccessful call of OpenSSL: 0 if it must be repeated. */
static int wait_to_repeat(SSL *ssl, int result, int64_t until_boot_ms, const char *where, struct error *err)
{
    int kind = SSL_get_error(ssl, result);
    if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE)
        return trouble_of_tls(ssl, result, where, err);
    int r = wait_for(SSL_get_fd(ssl), kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until_boot_ms);
    return r < 0 ? trouble_of_connect(r, where, err) : 0;
}

/* Negotiates the purpose of the connection (wire/tls/context.h). The session does not own the socket. */
static int tls_dial_handshake(SSL_CTX *context, int fd, const char *purpose, const struct address *address,
    int64_t until_boot_ms, SSL **ret, struct error *err)
{
    _cleanup_session_ SSL *ssl = SSL_new(context);
    _cleanup_free_ char *where = address_text(address);
    uint8_t offer[PURPOSE_MAX];
    size_t length = strlen(purpose);
    offer[0] = (uint8_t)length;
    memcpy(&offer[1], purpose, length);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || SSL_set_alpn_protos(ssl, offer, (unsigned)length + 1) != 0)
        return error_set(err, -ENOMEM, "cannot set up TLS");
    for (;;) {
        ERR_clear_error();
        errno = 0;
        int result = SSL_connect(ssl);
        if (result == 1)
            break;
        int r = wait_to_repeat(ssl, result, until_boot_ms, where, err);
        if (r < 0)
            return r;
    }
    *ret = take_ptr(ssl);
    return 0;
}

int tls_dial(SSL_CTX *context, const struct address *address, const char *purpose, int64_t until_boot_ms,
    SSL **ret, int *ret_fd, struct error *err)
{
    struct addrinfo *addresses = NULL;
    _cleanup_close_ int fd = -1;
    int r = tls_dial_resolve(address, &addresses, err);
    if (r < 0)
        return r;
    r = tls_dial_connect(addresses, address, until_boot_ms, &fd, err);
    freeaddrinfo(addresses);
    if (r == 0)
        r = tls_dial_handshake(context, fd, purpose, address, until_boot_ms, ret, err);
    if (r == 0)
        *ret_fd = take_fd(&fd);
    return r;
}

/* Transfers all bytes: from `out`, or into `in`. */
static int transfer(SSL *ssl, const uint8_t *out, uint8_t *in, size_t length, int64_t until_boot_ms,
    const char *where, struct error *err)
{
    for (size_t done = 0, n = 0; done < length; done += n, n = 0) {
        ERR_clear_error();
        errno = 0;
        int result = out != NULL ? SSL_write_ex(ssl, out + done, length - done, &n)
                                 : SSL_read_ex(ssl, in + done, length - done, &n);
        int r = result == 1 ? 0 : wait_to_repeat(ssl, result, until_boot_ms, where, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int tls_dial_send(
    SSL *ssl, const void *bytes, size_t length, int64_t until_boot_ms, const char *where, struct error *err)
{
    return transfer(ssl, bytes, NULL, length, until_boot_ms, where, err);
}

int tls_dial_receive(
    SSL *ssl, void *bytes, size_t length, int64_t until_boot_ms, const char *where, struct error *err)
{
    return transfer(ssl, NULL, bytes, length, until_boot_ms, where, err);
}

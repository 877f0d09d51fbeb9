/* SPDX-License-Identifier: MIT */
#include "wire/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/parse.h"

#define HOST_MAX 255U

static int refuse(const char *text, struct error *err)
{
    (void)error_set(err, -EINVAL, "'%.80s' is not HOST:PORT", text);
    return error_hint(
        err, "write it as gpu0:" NODES_PORT ", 10.0.0.7:" NODES_PORT " or [fd00::7]:" NODES_PORT);
}

/* The end of the host: at its bracket, or at the only colon. A bare IPv6 address has several. */
static const char *host_end(const char *text)
{
    if (text[0] == '[') {
        const char *bracket = strchr(text, ']');
        return bracket != NULL ? bracket + 1 : NULL;
    }
    const char *colon = strchr(text, ':');
    return colon == NULL ? text + strlen(text) : strchr(colon + 1, ':') == NULL ? colon : NULL;
}

int address_parse(const char *text, const char *default_port, struct address *ret, struct error *err)
{
    const char *end = host_end(text), *port = default_port;
    if (end == NULL || (*end != ':' && *end != '\0'))
        return refuse(text, err);
    if (*end == ':')
        port = end + 1;
    const char *host = text;
    size_t length = (size_t)(end - text);
    if (host[0] == '[') {
        host++;
        length -= 2;
    }
    int64_t number = 0;
    /* Colons occur only in brackets, and before a zone such as %eth0. */
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:%";
    if (length == 0 || length > HOST_MAX || strspn(host, allowed) < length || port == NULL ||
        parse_integer(port, "port", 1, UINT16_MAX, &number, NULL) < 0)
        return refuse(text, err);
    *ret = (struct address){ .host = xstrndup(host, length), .port = xasprintf("%d", (int)number) };
    return 0;
}

char *address_text(const struct address *address)
{
    bool is_six = strchr(address->host, ':') != NULL;
    return xasprintf("%s%s%s:%s", is_six ? "[" : "", address->host, is_six ? "]" : "", address->port);
}

void address_clear(struct address *address)
{
    free(address->host);
    free(address->port);
    *address = (struct address){ 0 };
}

static char *show(const struct sockaddr_storage *end, socklen_t length)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getnameinfo((const struct sockaddr *)end, length, host, sizeof(host), port, sizeof(port),
            NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return NULL;
    const char *shown = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
    bool is_six = strchr(shown, ':') != NULL;
    return xasprintf("%s%s%s:%s", is_six ? "[" : "", shown, is_six ? "]" : "", port);
}

char *address_of_peer(int fd)
{
    struct sockaddr_storage end = { 0 };
    socklen_t length = sizeof(end);
    char *shown = getpeername(fd, (struct sockaddr *)&end, &length) < 0 ? NULL : show(&end, length);
    return shown != NULL ? shown : xstrdup("an unknown address");
}

char *address_of_self(int fd)
{
    struct sockaddr_storage end = { 0 };
    socklen_t length = sizeof(end);
    return getsockname(fd, (struct sockaddr *)&end, &length) < 0 ? NULL : show(&end, length);
}

bool address_is_loopback(const char *listen)
{
    _cleanup_address_ struct address address = { 0 };
    if (address_parse(listen, API_PORT, &address, NULL) < 0)
        return false;
    return address_host_is_loopback(address.host);
}

void address_clear_list(struct address *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        address_clear(&addresses[i]);
}

int address_parse_list(const char *text, const char *default_port, struct address ret[ADDRESSES_MAX],
    size_t *ret_count, struct error *err)
{
    struct address addresses[ADDRESSES_MAX] = { 0 };
    size_t count = 0;
    int r = 0;
    for (const char *at = text; r == 0; at += strcspn(at, ",") + 1) {
        size_t length = strcspn(at, ",");
        _cleanup_free_ char *one = xstrndup(at, length);
        r = count == ADDRESSES_MAX ? error_set(err, -E2BIG, "there are more than %u addresses", ADDRESSES_MAX)
                                   : address_parse(one, default_port, &addresses[count], err);
        count += r == 0;
        if (at[length] == '\0')
            break;
    }
    if (r < 0) {
        address_clear_list(addresses, count);
        return r;
    }
    memcpy(ret, addresses, count * sizeof(*addresses));
    *ret_count = count;
    return 0;
}

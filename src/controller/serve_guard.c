/* SPDX-License-Identifier: MIT */
/*
 * The kernel tells who owns the other end of a loopback connection, and that is also the user's browser with
 * any page in it. A page of another site cannot hide its Origin, and a name that was re-pointed to 127.0.0.1
 * stays in the Host header. No CORS header is ever sent, so such a page cannot read an answer either.
 */
#include "controller/serve_guard.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* The length of the host in "HOST:PORT" or "[V6]:PORT" or "HOST". */
static size_t host_length(const char *text)
{
    if (text[0] == '[') {
        const char *end = strchr(text, ']');
        return end != NULL ? (size_t)(end - text) + 1 : strlen(text);
    }
    return strcspn(text, ":");
}

static bool is_same_host(const char *text, const char *host, size_t length)
{
    return strlen(host) == length && strncasecmp(text, host, length) == 0;
}

static bool is_ours(const char *host, const char *listen)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
    size_t length = host_length(host);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is_same_host(host, names[i], length))
            return true;
    return listen != NULL && host_length(listen) == length && length > 0 &&
           strncasecmp(host, listen, length) == 0;
}

int guard_check_message(const struct http_message *message, const char *listen, struct error *err)
{
    const char *host = http_message_header(message, "host");
    if (host == NULL && message->minor >= 1)
        return error_set(err, -EPROTO, "the Host header is missing");
    if (host != NULL && !is_ours(host, listen)) {
        (void)error_set(err, -EPERM, "this is not the host '%.80s'", host);
        return error_hint(err, "ask http://localhost");
    }
    const char *site = http_message_header(message, "sec-fetch-site");
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return error_set(err, -EPERM, "requests from pages of other sites are refused");
    const char *origin = http_message_header(message, "origin");
    if (origin == NULL)
        return 0;
    const char *scheme_end = strstr(origin, "://");
    if (scheme_end == NULL || host == NULL || strcasecmp(scheme_end + 3, host) != 0)
        return error_set(err, -EPERM, "requests from pages of other sites ('%.80s') are refused", origin);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The kernel reports the owner of the other end of a loopback connection, but that may be the user's browser
 * showing any page, and a browser with a session sends its cookie. A page of another site cannot hide its
 * Origin, and a name that was re-pointed to 127.0.0.1 remains in the Host header. No CORS header is ever
 * sent, so such a page cannot read a response either.
 */
#include "controller/http/guard.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* The length of the host in "HOST:PORT", "[V6]:PORT" or "HOST"; 0 if the text has none of these forms. */
static size_t host_length(const char *text)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : text + strcspn(text, ":");
    if (end == NULL)
        return 0;
    end += *end == ']';
    size_t digits = *end == ':' ? strspn(end + 1, "0123456789") : 0;
    bool is_whole = *end == '\0' || (*end == ':' && end[1 + digits] == '\0');
    return is_whole ? (size_t)(end - text) : 0;
}

static bool is_word(const char *text, const char *word, size_t length)
{
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

static bool is_ours(const char *host, const char *listen)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
    size_t length = host_length(host);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is_word(host, names[i], length))
            return true;
    return listen != NULL && length > 0 && host_length(listen) == length &&
           strncasecmp(host, listen, length) == 0;
}

/* True if "http://HOST:PORT" identifies a page of this mgpud. */
static bool is_same_site(const char *origin, const char *scheme, const char *host)
{
    size_t length = strlen(scheme);
    return host != NULL && strncasecmp(origin, scheme, length) == 0 && strcasecmp(origin + length, host) == 0;
}

int guard_check_forwarding(const struct http_message *message, struct error *err)
{
    static const char *const names[] = { "forwarded", "x-forwarded-for", "x-forwarded-host",
        "x-forwarded-proto", "x-real-ip", "via" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (http_message_header(message, names[i]) == NULL)
            continue;
        (void)error_set(err, -EPERM,
            "the request came through a proxy (header %s): the kernel identifies the proxy, not the caller",
            names[i]);
        return error_hint(err, "through a proxy, use the TCP port with a token from `mgpu token create`");
    }
    return 0;
}

int guard_check_body(const struct http_message *message, struct error *err)
{
    static const char *const types[] = { "application/json", "application/x-www-form-urlencoded" };
    const char *type = http_message_header(message, "content-type");
    if (type == NULL || message->body.length == 0)
        return 0;
    size_t length = strcspn(type, "; \t");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (is_word(type, types[i], length))
            return 0;
    (void)error_set(err, -EMEDIUMTYPE, "the body is %.80s, and not JSON", type);
    return error_hint(err, "send Content-Type: application/json");
}

bool guard_is_browser(const struct http_message *message)
{
    static const char *const names[] = { "origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (http_message_header(message, names[i]) != NULL)
            return true;
    const char *agent = http_message_header(message, "user-agent");
    return agent != NULL && strncmp(agent, "Mozilla/", strlen("Mozilla/")) == 0;
}

int guard_check_host(
    const struct http_message *message, const char *listen, bool has_localhost, struct error *err)
{
    const char *host = http_message_header(message, "host");
    if (host == NULL && message->minor >= 1)
        return error_set(err, -EPROTO, "the Host header is missing");
    if (host != NULL && !is_ours(host, listen)) {
        (void)error_set(err, -EPERM, "'%.80s' is not this host", host);
        return error_hint(err, "use http://127.0.0.1");
    }
    bool is_localhost = host != NULL && is_word(host, "localhost", host_length(host));
    if (is_localhost && !has_localhost && guard_is_browser(message)) {
        (void)error_set(err, -EPERM, "programs of other users may answer to '%.80s' as well", host);
        return error_hint(err, "use http://%s", listen);
    }
    return 0;
}

/* True if a user follows a link to the page in a separate window: not in a frame, and without changing
 * anything. */
static bool is_link(const struct http_message *message)
{
    const char *mode = http_message_header(message, "sec-fetch-mode");
    const char *destination = http_message_header(message, "sec-fetch-dest");
    return strcmp(message->method, "GET") == 0 && strcmp(message->target, "/") == 0 && mode != NULL &&
           strcmp(mode, "navigate") == 0 && destination != NULL && strcmp(destination, "document") == 0;
}

int guard_check_site(const struct http_message *message, bool is_tls, struct error *err)
{
    const char *site = http_message_header(message, "sec-fetch-site");
    const char *host = http_message_header(message, "host");
    bool is_ours = site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    if (!is_ours && !is_link(message))
        return error_set(err, -EPERM, "requests from pages of other sites are refused");
    const char *origin = http_message_header(message, "origin");
    if (origin == NULL)
        return 0;
    if (!is_same_site(origin, is_tls ? "https://" : "http://", host))
        return error_set(err, -EPERM, "requests from pages of other sites ('%.80s') are refused", origin);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* What a request must not be: one that a browser or a proxy was tricked into. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "controller/http/parser.h"

/*
 * Of a request over TCP without TLS. `listen` is the address mgpud was told to listen on (HOST:PORT), or
 * NULL. Refuses a Host that is not this machine's loopback or `listen`'s (DNS rebinding): -EPERM; a missing
 * Host with HTTP/1.1: -EPROTO.
 */
int guard_check_host(const struct http_message *message, const char *listen, struct error *err);

/*
 * Of a request over TCP that no Authorization identifies. Refuses what a page of another site sends: -EPERM.
 * A link from another site to the page itself is followed, as it shows nothing yet.
 */
int guard_check_site(const struct http_message *message, bool is_tls, struct error *err);

/* Of a request without a token: -EPERM when a proxy says that it passes it on for somebody. */
int guard_check_forwarding(const struct http_message *message, struct error *err);

/*
 * -EMEDIUMTYPE when the body says that it is something else than JSON. What `curl -d` says of every body
 * passes; a form of a page cannot write JSON in that type.
 */
int guard_check_body(const struct http_message *message, struct error *err);

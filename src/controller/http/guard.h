/* SPDX-License-Identifier: MIT */
/* Rejects requests that a browser or a proxy was tricked into sending. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "controller/http/parser.h"

/* Is it a browser that asks? One that is recent enough for the page says so, and scripts cannot prevent it.
 */
bool guard_is_browser(const struct http_message *message);

/*
 * For a request over TCP without TLS. `listen` is mgpud's listening address (HOST:PORT), or NULL. Refuses a
 * Host that is neither loopback nor that of `listen` (DNS rebinding): -EPERM; a missing Host with HTTP/1.1:
 * -EPROTO. Unless `has_localhost`, a browser that has come by the name `localhost` is refused, too: other
 * programs answer to that name as well, and their pages could be mistaken for mgpud's.
 */
int guard_check_host(
    const struct http_message *message, const char *listen, bool has_localhost, struct error *err);

/*
 * For a request over TCP without Authorization. Refuses requests from pages of other sites: -EPERM. A link
 * from another site to the page itself is followed, as it shows nothing yet.
 */
int guard_check_site(const struct http_message *message, bool is_tls, struct error *err);

/* For a request without a token: -EPERM if headers show that a proxy forwards it. */
int guard_check_forwarding(const struct http_message *message, struct error *err);

/*
 * -EMEDIUMTYPE if the Content-Type of a body is not JSON. The default type of `curl -d` is accepted; an HTML
 * form cannot produce JSON in that type.
 */
int guard_check_body(const struct http_message *message, struct error *err);

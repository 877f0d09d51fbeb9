/* SPDX-License-Identifier: MIT */
/* Joins a TLS session to a plain socket: what comes on one goes out on the other, both ways, and so do ends.
 */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>

#include "base/error.h"

struct tls_pump;

/* Both sides are over, or one broke (`err` then has a sentence). Called once; the pump may be freed in it. */
typedef void tls_pump_ended_fn(void *arg, const struct error *err);

/* Takes over the session, its socket and the plain socket; all three are closed with the pump. */
struct tls_pump *tls_pump_new(
    struct event_base *base, SSL *ssl, int net_fd, int plain_fd, tls_pump_ended_fn *on_end, void *arg);
void tls_pump_free(struct tls_pump *pump);

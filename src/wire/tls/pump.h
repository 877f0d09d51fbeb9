/* SPDX-License-Identifier: MIT */
/* Connects a TLS session and a plain socket: forwards data and ends in both directions. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>

#include "base/error.h"

struct tls_pump;

/* Both sides have ended, or one failed (`err` is then set). Called once; the callback may free the pump. */
typedef void tls_pump_ended_fn(void *arg, const struct error *err);

/* Takes ownership of the session, its socket and the plain socket; all three are closed with the pump. */
struct tls_pump *tls_pump_new(
    struct event_base *base, SSL *ssl, int net_fd, int plain_fd, tls_pump_ended_fn *on_end, void *arg);
void tls_pump_free(struct tls_pump *pump);

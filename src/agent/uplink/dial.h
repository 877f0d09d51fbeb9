/* SPDX-License-Identifier: MIT */
/* Dialling the controller beside the event loop: names, routes and handshakes take their time. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>

#include "base/error.h"
#include "wire/address.h"

struct dial;

/* The session and its socket are the callee's; `ssl` NULL: `err` says why not. The dial is over. */
typedef void dialled_fn(void *arg, SSL *ssl, int fd, const struct error *err);

/* -EAGAIN when there can be no further thread. */
int dial_start(struct event_base *base, SSL_CTX *context, const struct address *address, const char *purpose,
    dialled_fn *on_dialled, void *arg, struct dial **ret);

/* Nobody wants the answer any more. NULL is fine. */
void dial_forget(struct dial *dial);

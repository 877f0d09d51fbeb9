/* SPDX-License-Identifier: MIT */
/* Connects to the controller in a thread, because name lookups, routing and handshakes take time. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>

#include "base/error.h"
#include "wire/address.h"

struct dial;

/* The callee owns the session and its socket; `ssl` NULL: `err` has the reason. The dial has ended. */
typedef void dialled_fn(void *arg, SSL *ssl, int fd, const struct error *err);

/* -EAGAIN if no thread can be created. */
int dial_start(struct event_base *base, SSL_CTX *context, const struct address *address, const char *purpose,
    dialled_fn *on_dialled, void *arg, struct dial **ret);

/* Drops the result. NULL is allowed. */
void dial_forget(struct dial *dial);

/* SPDX-License-Identifier: MIT */
/* A program's open connections to other machines, each connected to a plain socket and labelled. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>
#include <stddef.h>

#include "base/error.h"

struct tls_sessions;

/* A connection has ended; `err` is set if it failed. */
typedef void tls_session_ended_fn(void *arg, const char *label, const struct error *err);

struct tls_sessions *tls_sessions_new(struct event_base *base, tls_session_ended_fn *on_end, void *arg);
void tls_sessions_free(struct tls_sessions *sessions);

/* Connects the session to a plain socket. Takes ownership of all three, also on failure. */
void tls_sessions_add(struct tls_sessions *sessions, SSL *ssl, int net_fd, int plain_fd, const char *label);

/* The same with a new socket pair, whose other end the caller owns. */
int tls_sessions_open(
    struct tls_sessions *sessions, SSL *ssl, int net_fd, const char *label, int *ret_plain_fd);

/* Closes those with this label at once, without on_end. */
void tls_sessions_cut(struct tls_sessions *sessions, const char *label);

/* The number of connections with this label; NULL: of all. */
size_t tls_sessions_count(const struct tls_sessions *sessions, const char *label);

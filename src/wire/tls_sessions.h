/* SPDX-License-Identifier: MIT */
/* The open connections to other machines of one program, each joined to a plain socket and with a label. */
#pragma once

#include <event2/event.h>
#include <openssl/types.h>
#include <stddef.h>

#include "base/error.h"

struct tls_sessions;

/* One has ended, `err` with a sentence when it broke. */
typedef void tls_session_ended_fn(void *arg, const char *label, const struct error *err);

struct tls_sessions *tls_sessions_new(struct event_base *base, tls_session_ended_fn *on_end, void *arg);
void tls_sessions_free(struct tls_sessions *sessions);

/* Joins the session to a plain socket. Takes all three over, whatever comes of it. */
void tls_sessions_add(struct tls_sessions *sessions, SSL *ssl, int net_fd, int plain_fd, const char *label);

/* The same with a socket pair of its own, whose other end is the caller's. */
int tls_sessions_open(
    struct tls_sessions *sessions, SSL *ssl, int net_fd, const char *label, int *ret_plain_fd);

/* Ends those with this label at once, without on_end. */
void tls_sessions_cut(struct tls_sessions *sessions, const char *label);

/* How many there are with this label; NULL: all. */
size_t tls_sessions_count(const struct tls_sessions *sessions, const char *label);

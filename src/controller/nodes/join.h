/* SPDX-License-Identifier: MIT */
/* Connections of machines that want to join, or to check whether they could. */
#pragma once

#include "base/error.h"

struct controller;
struct joinings;
struct log_quota;
struct tls_authority;

/* `quota`: for log lines about refusals; it must outlive this. */
struct joinings *joinings_new(struct controller *controller, struct log_quota *quota);

/* Closes all connections. Only after the store was closed, which may have requests from them. */
void joinings_free(struct joinings *joinings);

/* Takes ownership of the plain end of a new connection from `where`. */
void joinings_add(
    struct joinings *joinings, const struct tls_authority *authority, int fd, const char *where);

/* Refuses all that have no answer yet. Their joins may still complete. */
void joinings_refuse_all(struct joinings *joinings);

/* Sends REFUSED as the only message on a plain socket. */
void join_send_refusal(int fd, const struct error *err);

/* SPDX-License-Identifier: MIT */
/* Machines that ask to become nodes, or whether they could. */
#pragma once

#include "base/error.h"

struct controller;
struct joinings;
struct log_quota;
struct tls_authority;

/* `quota`: of lines about refusals; it outlives them. */
struct joinings *joinings_new(struct controller *controller, struct log_quota *quota);

/* Cuts whoever is left. Only after the store was closed, which may be asked for them. */
void joinings_free(struct joinings *joinings);

/* Takes over the plain end of a fresh connection from `where`. */
void joinings_add(
    struct joinings *joinings, const struct tls_authority *authority, int fd, const char *where);

/* Tells all who have no answer yet that there will be none. What was asked for them may still become so. */
void joinings_refuse_all(struct joinings *joinings);

/* REFUSED, as the last word on a plain socket that nothing was written to yet. */
void join_send_refusal(int fd, const struct error *err);

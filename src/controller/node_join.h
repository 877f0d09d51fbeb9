/* SPDX-License-Identifier: MIT */
/* A machine asks to become a node, or whether it could. */
#pragma once

#include "base/error.h"

struct controller;
struct log_quota;
struct tls_authority;

/* Takes over the plain end of a fresh connection from `where`. `quota`: of lines about refusals. */
void join_begin(struct controller *controller, const struct tls_authority *authority, int fd,
    const char *where, struct log_quota *quota);

/* REFUSED, as the last word on a plain socket that nothing was written to yet. */
void join_send_refusal(int fd, const struct error *err);

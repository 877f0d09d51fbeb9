/* SPDX-License-Identifier: MIT */
/* What is forwarded where: the operand [LOCAL:]PORT of mgpu forward. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* An end of a forward: a TCP port of the loopback addresses, or a unix socket. */
struct endpoint {
    uint16_t port;
    char *path; // NULL: the port; locally, port 0 is any free one
};

struct target {
    struct endpoint local, remote;
};

/* "8888" (the same port on both sides), "9000:8888", "0:8888", "9000:/run/app.sock", "/tmp/here.sock:80". */
int target_parse(const char *word, struct target *ret, struct error *err);

void target_clear(struct target *target);

/* "127.0.0.1:8888" or the path; "port 80" or the path. The caller frees it. */
char *target_local_name(const struct target *target);
char *target_remote_name(const struct target *target);

/* SPDX-License-Identifier: MIT */
/* Carries one connection to a port of a job. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "cli/options/call.h"
#include "cli/ports/target.h"

/* Which port of which job. */
struct carry_to {
    const char *job; // as in paths of the API
    uint32_t rank;   // of a job on several nodes
    const struct endpoint *remote;
};

/*
 * Connects to the port and copies between it and `fd`, a stream socket, until both sides have ended. mgpud is
 * dialled again while it restarts. Errors: that of connecting (-EADDRNOTAVAIL: nothing listens there), or
 * -ECONNRESET if the connection was cut later.
 */
int carry(struct call *call, const struct carry_to *to, int fd, struct error *err);

/* The same in a child process, which ends with this one and prints errors unless is_quiet. Returns its pid or
 * a negative errno; takes ownership of `fd`. */
pid_t carry_start(struct call *call, const struct carry_to *to, int fd, bool is_quiet);

/* SPDX-License-Identifier: MIT */
/* Joining as a node: presents a token and receives a certificate. */
#pragma once

#include "agent/host/node_home.h"
#include "wire/tls/join_token.h"

/* Joins as node NAME and stores the result in `home`. Blocks for at most half a minute. A repetition with the
 * same token and home is harmless. */
int enroll(struct node_home *home, const char *state_dir, const struct join_ticket *ticket, const char *name,
    struct error *err);

/* Reads the ticket from the first line of a file, or of standard input ("-"). */
int enroll_read_ticket(const char *path, struct join_ticket *ret, struct error *err);

/* SPDX-License-Identifier: MIT */
/* Becoming a node: a token is shown, a certificate comes back. */
#pragma once

#include "agent/host/node_home.h"
#include "wire/join_token.h"

/* Joins as node NAME and remembers it in `home`. Waits, for at most half a minute. Once more with the same
 * token and the same home is harmless. */
int enroll(struct node_home *home, const struct join_ticket *ticket, const char *name, struct error *err);

/* The ticket in the first line of a file, or of standard input ("-"). */
int enroll_read_ticket(const char *path, struct join_ticket *ret, struct error *err);

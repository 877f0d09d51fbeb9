/* SPDX-License-Identifier: MIT */
/* The addresses of this node's controllers, as last reported by the leader: a file in STATE/node. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "wire/address.h"

#define NODE_ADDRESSES_FILE "controllers"

/* Keeps "HOST:PORT,..." if it is such a list and differs from the one that is kept. */
int node_addresses_save(const char *state_dir, const char *text, struct error *err);

/* A message of the link: keeps the list that WELCOME or HEARTBEAT_ACK may have, for the uplink's next dial.
 */
void node_addresses_message(const char *state_dir, uint16_t id, const void *message);

/* The list; NULL: none is known. The caller frees it. */
char *node_addresses_load(const char *state_dir);

/* The addresses reported by a leader (NULL: none), then the configured ones, each once, as far as there is
 * space. The caller clears them. */
int node_addresses_join(const char *learnt, const char *given, struct address ret[ADDRESSES_MAX],
    size_t *ret_count, struct error *err);

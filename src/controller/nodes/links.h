/* SPDX-License-Identifier: MIT */
/* Connections of agents: frames in are handed to the core, frames out come from it. */
#pragma once

#include <stdint.h>

#include "base/record.h"

struct controller;
struct links;

struct links *links_new(struct controller *controller);
void links_free(struct links *links);

/* Takes over a connected socket on which an agent will say HELLO. */
void links_adopt(struct links *links, int fd);

/* The same for a socket that leads to the machine that has proven to be this node, at this address; `here` is
 * how it reaches this machine, or NULL. */
void links_adopt_node(struct links *links, int fd, const char *node, const char *address, const char *here);

/* Queues one message; dropped when that link has gone (the agent is told again after its next HELLO). */
/* Ends it soon. Nothing when there is no such link. */
void links_close(struct links *links, uint32_t id);

void links_send(struct links *links, uint32_t link, const struct record_type *type, const void *message);

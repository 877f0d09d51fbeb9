/* SPDX-License-Identifier: MIT */
/* Connections of agents: passes received frames to the core, and sends frames from it. */
#pragma once

#include <stdint.h>

#include "base/record.h"

struct controller;
struct links;

struct links *links_new(struct controller *controller);
void links_free(struct links *links);

/* Takes ownership of a connected socket on which an agent will send HELLO. */
void links_adopt(struct links *links, int fd);

/* The same for a socket to the machine that has proved to be this node, at this address; `here` is the
 * address at which it reaches this machine, or NULL. */
void links_adopt_node(struct links *links, int fd, const char *node, const char *address, const char *here);

/* Closes it soon. No effect if there is no such link. */
void links_close(struct links *links, uint32_t id);

/* Queues one message; dropped if that link is closed (it is resent after the node's next HELLO). */
void links_send(struct links *links, uint32_t link, const struct record_type *type, const void *message);

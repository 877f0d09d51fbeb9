/* SPDX-License-Identifier: MIT */
/* The agent's end of the link: sends and receives complete messages. */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/message.h"

struct agent_link;

/* A negative result closes the link; `err` then has the reason. The message is freed afterwards. */
typedef int agent_link_message_fn(void *arg, uint16_t id, const void *message, struct error *err);

/* The peer has closed the link, or sent invalid data (`err` is then set). Called once. */
typedef void agent_link_closed_fn(void *arg, const struct error *err);

/* Takes ownership of a connected stream socket. */
struct agent_link *agent_link_new(struct event_base *base, int fd, agent_link_message_fn *on_message,
    agent_link_closed_fn *on_closed, void *arg);

void agent_link_send(struct agent_link *link, const struct record_type *type, const void *message);

/* Bytes not yet accepted by the peer. */
size_t agent_link_backlog(struct agent_link *link);

/* Closes the link soon, as if the peer had closed it. */
void agent_link_end(struct agent_link *link);

void agent_link_free(struct agent_link *link);

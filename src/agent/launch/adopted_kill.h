/* SPDX-License-Identifier: MIT */
/* Ends the process of an adoption when somebody asks for that: a signal, and SIGKILL when it does not help.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>

struct adopted_kills;

struct adopted_kills *adopted_kills_new(struct event_base *base);
void adopted_kills_free(struct adopted_kills *kills);

/* Sends the signal to the process of the adoption in `dirfd`, and SIGKILL after `grace_ms`. To it alone: its
 * children are nobody's business. 0 also when it is over already. */
int adopted_kills_start(struct adopted_kills *kills, int dirfd, uint32_t signal, int64_t grace_ms);

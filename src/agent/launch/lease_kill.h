/* SPDX-License-Identifier: MIT */
/* Ends the process of a lease when somebody asks for that: a signal, and SIGKILL when it does not help. */
#pragma once

#include <event2/event.h>
#include <stdint.h>

struct lease_kills;

struct lease_kills *lease_kills_new(struct event_base *base);
void lease_kills_free(struct lease_kills *kills);

/* Sends the signal to the process of the lease in `dirfd`, and SIGKILL after `grace_ms`. To it alone: its
 * children are nobody's business. 0 also when it is over already. */
int lease_kills_start(struct lease_kills *kills, int dirfd, uint32_t signal, int64_t grace_ms);

/* SPDX-License-Identifier: MIT */
/* Kills the process of an adoption on request: a signal, then SIGKILL. */
#pragma once

#include <event2/event.h>
#include <stdint.h>

struct adopted_kills;

struct adopted_kills *adopted_kills_new(struct event_base *base);
void adopted_kills_free(struct adopted_kills *kills);

/* Sends the signal to the process of the adoption in `dirfd`, and SIGKILL after `grace_ms`; not to its
 * children. 0 also if it has already ended. */
int adopted_kills_start(struct adopted_kills *kills, int dirfd, uint32_t signal, int64_t grace_ms);

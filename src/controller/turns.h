/* SPDX-License-Identifier: MIT */
/* The turns of the event loop: when one ends. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#define TURN_MAX_MS  200  // a busy turn is ended after this time at the latest, whatever is still due
#define TURN_IDLE_MS 1000 // the same for the first turn after one in which nothing was due

struct turns;

/* A loop that looks at its timers and sockets again after a number of callbacks, however many are due. */
struct event_base *turns_loop_new(void);

/* `on_end` is called at the end of each turn. */
struct turns *turns_new(struct event_base *loop, void (*on_end)(void *arg), void *arg);
void turns_free(struct turns *turns);

/* One turn: waits for what is due and calls it. False, without on_end, when the loop was broken. */
bool turns_run(struct turns *turns);

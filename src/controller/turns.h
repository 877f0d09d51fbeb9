/* SPDX-License-Identifier: MIT */
/* The turns of the event loop: when one ends. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#define TURN_MAX_MS  200  // a busy turn is ended after this time at the latest, whatever is still due
#define TURN_IDLE_MS 1000 // the same for the first turn after one in which nothing was due

struct turns;

/* A loop that looks at its timers and sockets again after a number of callbacks, however many are due. */
struct event_base *turns_loop_new(void);

/* `on_end` is called at the end of each turn. */
struct turns *turns_new(struct event_base *loop, void (*on_end)(void *arg), void *arg);
void turns_free(struct turns *turns);

/* How long the loop kept everybody waiting at worst, within the last ten to twenty minutes. */
struct turns_worst {
    int64_t busy_us;  // processor time of one turn
    int64_t stall_ms; // how late a turn ended that was to end: by work, by a call that blocked, or because
                      // the machine gave mgpud no time
};

struct turns_worst turns_worst(const struct turns *turns); // NULL: nothing was measured

/* One turn: waits for what is due and calls it. False, without on_end, when the loop was broken. */
bool turns_run(struct turns *turns);

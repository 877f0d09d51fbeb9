/* SPDX-License-Identifier: MIT */
/* Turns of the event loop. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"

#define TURN_MAX_MS  10   // a busy turn ends after this time, even with events pending
#define TURN_IDLE_MS 1000 // the same for the first turn after an idle one

struct turns;

/* Creates a loop that checks its timers and sockets again after a number of callbacks, however many are
 * due. */
struct event_base *turns_loop_new(void);

/* `on_end` is called at the end of each turn. */
struct turns *turns_new(struct event_base *loop, void (*on_end)(void *arg), void *arg);
void turns_free(struct turns *turns);

/* A request has come: this turn ends soon, even if the loop was idle before. NULL: there are no turns. */
void turns_touch(struct turns *turns);

/*
 * Parts of a turn have names, so that the cause of a long one is known: take the time before it, and tell its
 * name in two words, both of static duration, after it ("GET", "/api/v1/gpus"). Where one part contains
 * another, the outer one counts.
 */
int64_t turns_step_begin(void);
void turns_step_end(struct turns *turns, int64_t began_us, const char *kind, const char *name);

struct turns_step {
    const char *kind, *name; // NULL: a turn without such a part
    int64_t busy_us;         // CPU time
};

/* Brings the end of this turn forward: what has been decided is handed to the store now, which writes it
 * while a part that takes long runs. NULL: there are no turns. */
void turns_hand_over(struct turns *turns);

/* "GET /api/v1/gpus", which the caller frees; NULL: the turn had no such part. */
char *turns_step_name(const struct turns_step *step);

/* The longest delays of the loop within the last ten to twenty minutes. */
struct turns_worst {
    int64_t busy_us;        // CPU time of one turn
    struct turns_step step; // the longest part of that turn
    int64_t stall_ms; // how much later than planned a turn ended: because of work, a blocking call, or a lack
                      // of CPU time
};

struct turns_worst turns_worst(const struct turns *turns); // NULL: not measured

/* CPU time of all turns: histogram_of_turns. */
const struct histogram *turns_histogram(const struct turns *turns); // NULL: not measured

/* Runs one turn: waits for events and dispatches them. False, without on_end, if the loop was broken. */
bool turns_run(struct turns *turns);

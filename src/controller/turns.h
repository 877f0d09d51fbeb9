/* SPDX-License-Identifier: MIT */
/* Turns of the event loop. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"

#define TURN_MAX_MS  10   // a busy turn ends after this time, even with events pending
#define TURN_IDLE_MS 1000 // the same for the first turn after an idle one

#define TURNS_AROUND_US                                                                                      \
    20 // cost of a socket's callback in libevent and the kernel: waiting, reading, writing

struct turns;

/*
 * The priority of an event: which due callbacks come first. TURNS_REST is the default, in the order in which
 * events became due. The others together may take at most half of the time, and events that request one call
 * turns_place() each time.
 */
enum turns_place {
    TURNS_FIRST, // events that others wait for: the end of a commit, the end of a turn
    TURNS_USUAL, // requests of users who have used little time
    TURNS_SOON,  // then their changes are passed to the store
    TURNS_REST,
};

/* Creates a loop that checks its timers and sockets again after a number of callbacks, however many are
 * due. */
struct event_base *turns_loop_new(void);

/* `on_end` is called at the end of each turn. */
struct turns *turns_new(struct event_base *loop, void (*on_end)(void *arg), void *arg);
void turns_free(struct turns *turns);

/* A request has arrived: this turn ends soon, even if the loop was idle before. NULL: there are no turns. */
void turns_touch(struct turns *turns);

/*
 * Parts of a turn have names, which identify the cause of a long one: take the time before it, and pass its
 * name in two words, both of static duration, after it ("GET", "/api/v1/gpus"). If one part contains another,
 * the outer one counts.
 */
int64_t turns_step_begin(void);
void turns_step_end(struct turns *turns, int64_t began_us, const char *kind, const char *name);

/* The place itself, or TURNS_REST if those before the rest have used up their time. NULL: TURNS_REST. */
enum turns_place turns_place(const struct turns *turns, enum turns_place wanted);

/* Charges CPU time that a callback in this place has used. */
void turns_spend(struct turns *turns, enum turns_place place, int64_t used_us);

/* The end of a callback of this event: its time counts, and the event moves to the place it may have. NULL
 * is allowed. */
void turns_end_callback(struct turns *turns, struct event *event, enum turns_place wanted, int64_t began_us);

/* CPU time of this thread. */
int64_t turns_thread_us(void);

struct turns_step {
    const char *kind, *name; // NULL: a turn without such a part
    int64_t busy_us;         // CPU time
};

/* Brings the end of this turn forward: passes the decisions to the store now, which writes them while a long
 * part runs. NULL: there are no turns. */
void turns_hand_over(struct turns *turns);

/* The same, after the due requests and before the rest. */
void turns_end_soon(struct turns *turns);

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

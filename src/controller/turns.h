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
    20 // what libevent and the kernel do for a callback of a socket: waiting, reading, writing

struct turns;

/*
 * Which of the callbacks that are due come first: the priority of an event. The rest is what an event is that
 * has no other, and takes turns in the order in which it became due. The others may take at most half of the
 * time together, and what wants to be one of them asks turns_place() each time.
 */
enum turns_place {
    TURNS_FIRST, // what others wait for: the end of a commit, the end of a turn
    TURNS_USUAL, // requests of users who have had little of the time
    TURNS_SOON,  // then what these have changed is handed to the store
    TURNS_REST,
};

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

/* The place itself, or TURNS_REST if those before the rest have used up their time. NULL: TURNS_REST. */
enum turns_place turns_place(const struct turns *turns, enum turns_place wanted);

/* A callback in this place has used so much CPU time. */
void turns_spend(struct turns *turns, enum turns_place place, int64_t used_us);

/* The end of a callback of this event: its time counts, and the event moves to the place it may have. NULL
 * is allowed. */
void turns_settle(struct turns *turns, struct event *event, enum turns_place wanted, int64_t began_us);

/* CPU time of this thread. */
int64_t turns_thread_us(void);

struct turns_step {
    const char *kind, *name; // NULL: a turn without such a part
    int64_t busy_us;         // CPU time
};

/* Brings the end of this turn forward: what has been decided is handed to the store now, which writes it
 * while a part that takes long runs. NULL: there are no turns. */
void turns_hand_over(struct turns *turns);

/* The same, behind the usual requests that are due, and before the rest. */
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

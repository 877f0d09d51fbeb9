/* SPDX-License-Identifier: MIT */
/*
 * libevent ends a run of its loop (EVLOOP_ONCE) when no more callbacks are due. Callbacks that trigger each
 * other can prevent that indefinitely, and all decisions and commits at the end of a turn would wait for
 * them. A timer therefore ends long turns; the loop checks its timers after ROUND_US at most. Waiting for
 * events is part of a turn, and the timer cannot distinguish it from work: after a turn that it ended while
 * idle it is set to a longer time, so that an idle daemon is not woken five times a second.
 *
 * Under load, a callback waits at each of its steps (accept, read, commit, answer) for all events that became
 * due before it. Events of users with few requests therefore come before the rest, for at most half of the
 * time.
 *
 * The duration of turns is measured, because one long callback delays all users. libevent does not report
 * when it stops waiting, so there are two measures: the CPU time of a turn, which excludes waiting, and the
 * lateness of the timer, which includes blocking calls.
 */
#include "controller/turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/allowance.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define ROUND_MAX     1024             // callbacks between two checks of the timers and sockets
#define ROUND_US      1000             // or this time
#define IDLE_US       2000             // processor time of an almost idle turn
#define PLACES        (2 * TURNS_REST) // an event has the middle priority unless it is given another
#define WINDOW_MS     600000           // the worst value of this window and of the previous one is kept
#define STALL_WARN_MS 1000

/* On the clock of the thread: half of the processor time it gets, not of the elapsed time. */
static const struct allowance_rate before_the_rest = { .percent = 50, .most_us = 20000, .debt_us = 20000 };

struct turns {
    struct event_base *loop;
    struct event *limit, *soon;
    struct allowance before_rest;
    void (*on_end)(void *arg);
    void *arg;
    bool was_idle;                          // the timer ended an almost idle turn
    bool is_idle;                           // the present turn has the longer limit
    int64_t due_ms;                         // when the timer ends the present turn
    int64_t busy_us;                        // the thread's processor time at the start of the present turn
    struct turns_step step;                 // the longest step of the present turn
    int64_t window_ms;                      // start of the present window
    struct turns_worst worst, worst_before; // of this window and the previous one
    struct histogram all;
};

int64_t turns_thread_us(void)
{
    struct timespec used = { 0 };
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

int64_t turns_step_begin(void)
{
    return turns_thread_us();
}

void turns_step_end(struct turns *turns, int64_t began_us, const char *kind, const char *name)
{
    int64_t busy_us = turns_thread_us() - began_us;
    if (turns != NULL && busy_us >= turns->step.busy_us)
        turns->step = (struct turns_step){ kind, name, busy_us };
}

char *turns_step_name(const struct turns_step *step)
{
    return step->name != NULL ? xasprintf("%s %s", step->kind, step->name) : NULL;
}

static void warn(struct turns *turns, int64_t stall_ms)
{
    if (stall_ms >= STALL_WARN_MS && turns->worst.stall_ms < STALL_WARN_MS)
        log_warning(
            "all users waited %" PRId64 " ms for one turn; reported at most every ten minutes", stall_ms);
}

/* Called at the end of a turn; the next one begins. */
static void measure(struct turns *turns)
{
    int64_t now_ms = clock_boot_ms(), used_us = turns_thread_us();
    int64_t busy_us = used_us - turns->busy_us, stall_ms = now_ms - turns->due_ms;
    if (now_ms - turns->window_ms >= WINDOW_MS) {
        turns->worst_before = turns->worst;
        turns->worst = (struct turns_worst){ 0 };
        turns->window_ms = now_ms;
    }
    warn(turns, stall_ms);
    histogram_add(&turns->all, &histogram_of_turns, (double)busy_us / 1e6);
    if (busy_us > turns->worst.busy_us) {
        turns->worst.busy_us = busy_us;
        turns->worst.step = turns->step;
    }
    turns->step = (struct turns_step){ 0 };
    if (stall_ms > turns->worst.stall_ms)
        turns->worst.stall_ms = stall_ms;
    turns->busy_us = used_us;
}

struct turns_worst turns_worst(const struct turns *turns)
{
    if (turns == NULL)
        return (struct turns_worst){ 0 };
    const struct turns_worst *one = &turns->worst, *other = &turns->worst_before;
    return (struct turns_worst){
        .busy_us = one->busy_us > other->busy_us ? one->busy_us : other->busy_us,
        .step = one->busy_us > other->busy_us ? one->step : other->step,
        .stall_ms = one->stall_ms > other->stall_ms ? one->stall_ms : other->stall_ms,
    };
}

const struct histogram *turns_histogram(const struct turns *turns)
{
    return turns != NULL ? &turns->all : NULL;
}

struct event_base *turns_loop_new(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        abort(); // memory
    const struct timeval round = { .tv_usec = ROUND_US };
    (void)event_config_set_max_dispatch_interval(config, &round, ROUND_MAX, 0);
    struct event_base *loop = event_base_new_with_config(config);
    event_config_free(config);
    if (loop == NULL || event_base_priority_init(loop, PLACES) < 0)
        abort(); // memory
    return loop;
}

static void set_limit(struct turns *turns, bool is_idle)
{
    unsigned limit_ms = is_idle ? TURN_IDLE_MS : TURN_MAX_MS;
    turns->is_idle = is_idle;
    const struct timeval limit = { .tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000 };
    turns->due_ms = clock_boot_ms() + limit_ms;
    (void)event_add(turns->limit, &limit);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    struct turns *turns = arg;
    turns->was_idle = turns_thread_us() - turns->busy_us < IDLE_US;
    turns->on_end(turns->arg);
    measure(turns);
    set_limit(turns, false);
}

void turns_hand_over(struct turns *turns)
{
    if (turns != NULL)
        turns->on_end(turns->arg);
}

static void on_soon(evutil_socket_t fd, short what, void *arg)
{
    struct turns *turns = arg;
    int64_t began_us = turns_thread_us();
    turns->on_end(turns->arg);
    turns_spend(turns, TURNS_SOON, turns_thread_us() - began_us);
}

void turns_end_soon(struct turns *turns)
{
    if (turns != NULL)
        event_active(turns->soon, EV_TIMEOUT, 0);
}

enum turns_place turns_place(const struct turns *turns, enum turns_place wanted)
{
    bool is_left =
        turns != NULL && allowance_is_left(&turns->before_rest, &before_the_rest, turns_thread_us());
    return is_left ? wanted : TURNS_REST;
}

void turns_spend(struct turns *turns, enum turns_place place, int64_t used_us)
{
    if (turns != NULL && place != TURNS_REST)
        allowance_spend(&turns->before_rest, &before_the_rest, turns_thread_us(), used_us);
}

void turns_end_callback(struct turns *turns, struct event *event, enum turns_place wanted, int64_t began_us)
{
    if (turns == NULL)
        return;
    turns_spend(turns, (enum turns_place)event_get_priority(event), turns_thread_us() - began_us);
    (void)event_priority_set(event, (int)turns_place(turns, wanted));
}

void turns_touch(struct turns *turns)
{
    if (turns != NULL && turns->is_idle)
        set_limit(turns, false);
}

struct turns *turns_new(struct event_base *loop, void (*on_end)(void *arg), void *arg)
{
    struct turns *turns = xcalloc(1, sizeof(*turns));
    *turns = (struct turns){ .loop = loop, .on_end = on_end, .arg = arg, .busy_us = turns_thread_us() };
    turns->window_ms = clock_boot_ms();
    turns->limit = evtimer_new(loop, on_limit, turns);
    turns->soon = evtimer_new(loop, on_soon, turns);
    if (turns->limit == NULL || turns->soon == NULL)
        abort(); // memory
    (void)event_priority_set(turns->limit, TURNS_FIRST);
    (void)event_priority_set(turns->soon, TURNS_SOON);
    return turns;
}

void turns_free(struct turns *turns)
{
    if (turns == NULL)
        return;
    event_free(turns->limit);
    event_free(turns->soon);
    free(turns);
}

bool turns_run(struct turns *turns)
{
    set_limit(turns, turns->was_idle);
    turns->was_idle = false;
    int r = event_base_loop(turns->loop, EVLOOP_ONCE);
    if (event_base_got_break(turns->loop) || r != 0)
        return false;
    turns->on_end(turns->arg);
    measure(turns);
    return true;
}

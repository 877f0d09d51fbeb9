/* SPDX-License-Identifier: MIT */
/*
 * libevent ends a run of its loop (EVLOOP_ONCE) when no callback is due any more. Callbacks that make each
 * other due can keep that from ever happening, and what a turn decides and commits at its end would wait for
 * them. A timer therefore ends turns that last; the loop looks at its timers between rounds of at most
 * ROUND_MAX callbacks. A turn also waits until something is due, which the timer cannot tell from work: it is
 * set to a longer time after a turn that it ended, so that an idle daemon is not woken five times a second.
 */
#include "controller/turns.h"

#include <stdlib.h>

#include "base/memory.h"

#define ROUND_MAX 1024

struct turns {
    struct event_base *loop;
    struct event *limit;
    void (*on_end)(void *arg);
    void *arg;
    bool was_ended; // the present turn, by the timer
};

struct event_base *turns_loop_new(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        abort(); // memory
    (void)event_config_set_max_dispatch_interval(config, NULL, ROUND_MAX, 0);
    struct event_base *loop = event_base_new_with_config(config);
    event_config_free(config);
    return loop;
}

static void set_limit(struct turns *turns, unsigned limit_ms)
{
    const struct timeval limit = { .tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000 };
    (void)event_add(turns->limit, &limit);
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    struct turns *turns = arg;
    turns->was_ended = true;
    turns->on_end(turns->arg);
    set_limit(turns, TURN_MAX_MS);
}

struct turns *turns_new(struct event_base *loop, void (*on_end)(void *arg), void *arg)
{
    struct turns *turns = xcalloc(1, sizeof(*turns));
    *turns = (struct turns){ .loop = loop, .on_end = on_end, .arg = arg };
    turns->limit = evtimer_new(loop, on_limit, turns);
    if (turns->limit == NULL)
        abort(); // memory
    return turns;
}

void turns_free(struct turns *turns)
{
    if (turns == NULL)
        return;
    event_free(turns->limit);
    free(turns);
}

bool turns_run(struct turns *turns)
{
    set_limit(turns, turns->was_ended ? TURN_IDLE_MS : TURN_MAX_MS);
    turns->was_ended = false;
    int r = event_base_loop(turns->loop, EVLOOP_ONCE);
    if (event_base_got_break(turns->loop) || r != 0)
        return false;
    turns->on_end(turns->arg);
    return true;
}

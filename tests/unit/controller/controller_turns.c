/* SPDX-License-Identifier: MIT */
/* Turns end, whatever the callbacks of the loop do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "controller/turns.h"

#define STUCK_S 30 // a loop that never ends a turn ends the test

struct world {
    struct event_base *loop;
    struct event *restless;
    unsigned turns, calls;
};

static int start(void **state)
{
    static struct world world;
    world = (struct world){ .loop = turns_loop_new() };
    (void)alarm(STUCK_S);
    *state = &world;
    return 0;
}

static int stop(void **state)
{
    struct world *world = *state;
    (void)alarm(0);
    event_base_free(world->loop);
    return 0;
}

static void count(void *arg)
{
    struct world *world = arg;
    world->turns++;
}

static void on_once(int fd, short what, void *arg)
{
    struct world *world = arg;
    world->calls++;
}

static void on_restless(int fd, short what, void *arg)
{
    struct world *world = arg;
    world->calls++;
    if (world->turns < 3)
        event_active(world->restless, EV_TIMEOUT, 0);
    else
        (void)event_base_loopbreak(world->loop);
}

static void a_turn_ends_when_nothing_is_due(void **state)
{
    struct world *world = *state;
    struct turns *turns = turns_new(world->loop, count, world);
    struct event *once = evtimer_new(world->loop, on_once, world);
    event_active(once, EV_TIMEOUT, 0);
    assert_true(turns_run(turns));
    assert_int_equal(world->calls, 1);
    assert_int_equal(world->turns, 1);
    event_free(once);
    turns_free(turns);
}

static void a_callback_that_is_always_due_keeps_no_turn_from_ending(void **state)
{
    struct world *world = *state;
    struct turns *turns = turns_new(world->loop, count, world);
    world->restless = evtimer_new(world->loop, on_restless, world);
    event_active(world->restless, EV_TIMEOUT, 0);
    assert_false(turns_run(turns)); // one run of the loop, which the callback breaks after three turns
    assert_int_equal(world->turns, 3);
    assert_true(world->calls > 3);
    event_free(world->restless);
    turns_free(turns);
}

static void an_idle_loop_is_woken_once_a_second(void **state)
{
    struct world *world = *state;
    struct turns *turns = turns_new(world->loop, count, world);
    struct event *end = evtimer_new(world->loop, on_once, world);
    (void)evtimer_add(end, &(struct timeval){ .tv_sec = 2 });
    while (world->calls == 0)
        assert_true(turns_run(turns));
    assert_in_range(world->turns, 2, 2 * 4); // a timer ends a turn twice: in its callback, and behind it
    event_free(end);
    turns_free(turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_turn_ends_when_nothing_is_due, start, stop),
        cmocka_unit_test_setup_teardown(a_callback_that_is_always_due_keeps_no_turn_from_ending, start, stop),
        cmocka_unit_test_setup_teardown(an_idle_loop_is_woken_once_a_second, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

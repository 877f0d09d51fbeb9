/* SPDX-License-Identifier: MIT */
/* Turns end regardless of what the callbacks of the loop do. */

#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "controller/turns.h"
#include "unit_test.h"

#define WORK_MS  150
#define BLOCK_MS 600
#define STUCK_S  30 // a loop that never ends a turn ends the test

struct world {
    struct event_base *loop;
    struct event *restless;
    struct turns *measured;
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

#define CASE(name, world) TEST_ON(name, struct world *world, start, stop)

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

CASE(a_turn_ends_when_nothing_is_due, world)
{
    struct turns *turns = turns_new(world->loop, count, world);
    struct event *once = evtimer_new(world->loop, on_once, world);
    event_active(once, EV_TIMEOUT, 0);
    assert_true(turns_run(turns));
    assert_int_equal(world->calls, 1);
    assert_int_equal(world->turns, 1);
    event_free(once);
    turns_free(turns);
}

CASE(a_callback_that_is_always_due_keeps_no_turn_from_ending, world)
{
    struct turns *turns = turns_new(world->loop, count, world);
    world->restless = evtimer_new(world->loop, on_restless, world);
    event_active(world->restless, EV_TIMEOUT, 0);
    assert_false(turns_run(turns)); // one run of the loop, which the callback breaks after three turns
    assert_int_equal(world->turns, 3);
    assert_true(world->calls > 3);
    event_free(world->restless);
    turns_free(turns);
}

CASE(an_idle_loop_is_woken_once_a_second, world)
{
    struct turns *turns = turns_new(world->loop, count, world);
    struct event *end = evtimer_new(world->loop, on_once, world);
    (void)evtimer_add(end, &(struct timeval){ .tv_sec = 2 });
    while (world->calls == 0)
        assert_true(turns_run(turns));
    assert_in_range(world->turns, 2, 2 * 4); // a timer ends a turn twice: in its callback, and after it
    event_free(end);
    turns_free(turns);
}

static void on_work(int fd, short what, void *arg)
{
    struct world *world = arg;
    struct timespec now = { 0 }, begin;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do // processor time, so that it is the same on a busy machine
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < WORK_MS);
    world->calls++;
}

static void on_block(int fd, short what, void *arg)
{
    struct world *world = arg;
    (void)poll(NULL, 0, BLOCK_MS);
    world->calls++;
}

static struct turns_worst worst_of(struct world *world, event_callback_fn callback)
{
    struct turns *turns = turns_new(world->loop, count, world);
    struct event *once = evtimer_new(world->loop, callback, world);
    assert_int_equal(turns_worst(turns).busy_us + turns_worst(turns).stall_ms, 0);
    event_active(once, EV_TIMEOUT, 0);
    assert_true(turns_run(turns));
    struct turns_worst worst = turns_worst(turns);
    event_free(once);
    turns_free(turns);
    return worst;
}

CASE(a_turn_that_takes_long_is_noticed, world)
{
    assert_true(worst_of(world, on_once).busy_us < WORK_MS * 1000);
    assert_true(worst_of(world, on_work).busy_us >= WORK_MS * 1000);
}

CASE(a_call_that_blocks_is_noticed, world)
{
    struct turns_worst worst = worst_of(world, on_block);
    assert_true(worst.stall_ms >= BLOCK_MS - TURN_MAX_MS);
    assert_true(worst.busy_us < (BLOCK_MS - TURN_MAX_MS) * 1000);
}

/* The middle one of three parts, one in another, works. */
static void on_parts(int fd, short what, void *arg)
{
    struct world *world = arg;
    int64_t before_us = turns_step_begin();
    turns_step_end(world->measured, before_us, "GET", "/before");
    int64_t outer_us = turns_step_begin(), inner_us = turns_step_begin();
    on_work(fd, what, arg);
    turns_step_end(world->measured, inner_us, "message", "INNER");
    turns_step_end(world->measured, outer_us, "GET", "/outer");
    int64_t after_us = turns_step_begin();
    turns_step_end(world->measured, after_us, "GET", "/after");
}

CASE(the_longest_part_of_the_longest_turn_is_named, world)
{
    world->measured = turns_new(world->loop, count, world);
    struct event *once = evtimer_new(world->loop, on_parts, world);
    event_active(once, EV_TIMEOUT, 0);
    assert_true(turns_run(world->measured));
    event_free(once);
    once = evtimer_new(world->loop, on_once, world); // a short turn after it
    event_active(once, EV_TIMEOUT, 0);
    assert_true(turns_run(world->measured));
    struct turns_worst worst = turns_worst(world->measured);
    char *name = turns_step_name(&worst.step);
    assert_string_equal(name, "GET /outer");
    assert_true(worst.step.busy_us >= WORK_MS * 1000 && worst.step.busy_us <= worst.busy_us);
    assert_null(turns_step_name(&(struct turns_step){ 0 }));
    free(name);
    event_free(once);
    turns_free(world->measured);
}

CASE(a_turn_can_hand_over_before_a_long_part, world)
{
    struct turns *turns = turns_new(world->loop, count, world);
    unsigned before = world->turns;
    turns_hand_over(turns);
    turns_hand_over(NULL);
    assert_int_equal(world->turns, before + 1);
    turns_free(turns);
}

CASE(waiting_is_not_taken_for_work, world)
{
    struct turns *turns = turns_new(world->loop, count, world);
    struct event *end = evtimer_new(world->loop, on_once, world);
    (void)evtimer_add(end, &(struct timeval){ .tv_usec = 700000 });
    while (world->calls == 0)
        assert_true(turns_run(turns));
    assert_true(turns_worst(turns).busy_us < WORK_MS * 1000);
    event_free(end);
    turns_free(turns);
}

/* --- what comes first --- */

#define CROWD   40
#define REST_MS 1
#define HALF_MS 400

struct crowd {
    struct world *world;
    struct event *members[CROWD], *usual;
    unsigned served;               // of the members
    unsigned before_usual;         // of these turns, when the usual event came
    unsigned turns_when_usual_end; // turns that had ended when the next member came
    bool is_next;
};

static void on_member(int fd, short what, void *arg)
{
    struct crowd *crowd = arg;
    if (crowd->is_next)
        crowd->turns_when_usual_end = crowd->world->turns;
    crowd->is_next = false;
    if (crowd->served++ == 0)
        event_active(crowd->usual, EV_TIMEOUT, 0);
}

static void on_usual(int fd, short what, void *arg)
{
    struct crowd *crowd = arg;
    crowd->before_usual = crowd->served;
    crowd->is_next = true;
    turns_end_soon(crowd->world->measured);
}

CASE(a_usual_event_waits_for_one_of_the_rest_and_its_turn_ends_before_the_others, world)
{
    struct crowd crowd = { .world = world };
    world->measured = turns_new(world->loop, count, world);
    crowd.usual = evtimer_new(world->loop, on_usual, &crowd);
    assert_int_equal(event_priority_set(crowd.usual, turns_place(world->measured, TURNS_USUAL)), 0);
    for (size_t i = 0; i < CROWD; i++) {
        crowd.members[i] = evtimer_new(world->loop, on_member, &crowd);
        assert_int_equal(event_get_priority(crowd.members[i]), TURNS_REST);
        event_active(crowd.members[i], EV_TIMEOUT, 0);
    }
    assert_true(turns_run(world->measured));
    assert_int_equal(crowd.served, CROWD);
    assert_int_equal(crowd.before_usual, 1);
    assert_true(crowd.turns_when_usual_end >= 1);
    for (size_t i = 0; i < CROWD; i++)
        event_free(crowd.members[i]);
    event_free(crowd.usual);
    turns_free(world->measured);
}

struct greedy {
    struct turns *turns;
    struct event *first, *rest;
    int64_t first_us, rest_us;
};

static int64_t spin(void)
{
    int64_t began_us = turns_thread_us();
    while (turns_thread_us() - began_us < REST_MS * 1000)
        continue;
    return began_us;
}

static void on_first(int fd, short what, void *arg)
{
    struct greedy *greedy = arg;
    int64_t began_us = spin();
    greedy->first_us += turns_thread_us() - began_us;
    turns_end_callback(greedy->turns, greedy->first, TURNS_FIRST, began_us);
    event_active(greedy->first, EV_TIMEOUT, 0);
    if (greedy->first_us >= HALF_MS * 1000)
        (void)event_base_loopbreak(event_get_base(greedy->first));
}

static void on_rest(int fd, short what, void *arg)
{
    struct greedy *greedy = arg;
    int64_t began_us = spin();
    greedy->rest_us += turns_thread_us() - began_us;
    event_active(greedy->rest, EV_TIMEOUT, 0);
}

CASE(what_comes_first_leaves_the_rest_its_part_of_the_time, world)
{
    struct greedy greedy = { .turns = turns_new(world->loop, count, world) };
    greedy.first = evtimer_new(world->loop, on_first, &greedy);
    greedy.rest = evtimer_new(world->loop, on_rest, &greedy);
    event_active(greedy.first, EV_TIMEOUT, 0);
    event_active(greedy.rest, EV_TIMEOUT, 0);
    assert_false(turns_run(greedy.turns));
    assert_true(greedy.rest_us > greedy.first_us / 4);
    event_free(greedy.first);
    event_free(greedy.rest);
    turns_free(greedy.turns);
}

TEST(without_turns_everything_is_one_of_the_rest)
{
    assert_int_equal(turns_place(NULL, TURNS_FIRST), TURNS_REST);
    turns_spend(NULL, TURNS_FIRST, 1);
    turns_end_callback(NULL, NULL, TURNS_FIRST, 0);
    turns_end_soon(NULL);
}

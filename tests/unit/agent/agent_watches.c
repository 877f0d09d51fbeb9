/* SPDX-License-Identifier: MIT */
/* Watched processes by spool entry. Ends of sockets stand in for processes: they become readable too. */

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/host/watches.h"
#include "unit_test.h"

#define MANY 300U // more than the table has room for at first

struct scene {
    struct event_base *base;
    struct watches *watches;
    int ours[MANY + 1];
    size_t n_ends;
    struct spool_id ended;
    pid_t pid;
};

static void on_end(void *arg, const struct spool_id *id, pid_t pid)
{
    struct scene *scene = arg;
    scene->n_ends++;
    scene->ended = *id;
    scene->pid = pid;
}

static int open_scene(void **state)
{
    static struct scene scene;
    scene = (struct scene){ .base = event_base_new() };
    memset(scene.ours, -1, sizeof(scene.ours));
    scene.watches = watches_new(scene.base, on_end, &scene);
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    watches_free(scene->watches);
    for (size_t i = 0; i <= MANY; i++)
        if (scene->ours[i] >= 0)
            (void)close(scene->ours[i]);
    event_base_free(scene->base);
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, close_scene)

static struct spool_id id_of(uint64_t job)
{
    return (struct spool_id){ .job = job, .attempt = 1 };
}

static void add(struct scene *scene, size_t at, uint64_t job)
{
    int pair[2];
    struct spool_id id = id_of(job);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    scene->ours[at] = pair[0];
    watches_add(scene->watches, &id, (pid_t)(1000 + at), pair[1]);
}

static void end(struct scene *scene, size_t at)
{
    assert_int_equal(close(scene->ours[at]), 0);
    scene->ours[at] = -1;
    (void)event_base_loop(scene->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

static bool has(const struct scene *scene, uint64_t job)
{
    struct spool_id id = id_of(job);
    return watches_has(scene->watches, &id);
}

CASE(each_of_many_is_found_until_it_ends, scene)
{
    for (size_t i = 0; i < MANY; i++)
        add(scene, i, i);
    for (size_t i = 0; i < MANY; i += 7) {
        assert_true(has(scene, i));
        end(scene, i);
        assert_false(has(scene, i));
        assert_int_equal(scene->ended.job, i);
        assert_int_equal(scene->pid, 1000 + i);
    }
    assert_int_equal(scene->n_ends, (MANY + 6) / 7);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(has(scene, i), i % 7 != 0);
}

CASE(steps_and_ranks_are_told_apart, scene)
{
    add(scene, 0, 5);
    const struct spool_id others[] = { { .job = 5, .attempt = 2 }, { .job = 5, .attempt = 1, .step = 1 },
        { .job = 5, .attempt = 1, .rank = 1 } };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(watches_has(scene->watches, &others[i]));
}

CASE(an_entry_may_have_two, scene)
{
    add(scene, 0, 5);
    add(scene, 1, 5);
    end(scene, 0);
    assert_int_equal(scene->pid, 1000);
    assert_true(has(scene, 5));
    end(scene, 1);
    assert_int_equal(scene->pid, 1001);
    assert_false(has(scene, 5));
}

CASE(what_is_dropped_is_not_reported, scene)
{
    struct spool_id id = id_of(5);
    add(scene, 0, 5);
    add(scene, 1, 5);
    add(scene, 2, 6);
    watches_drop(scene->watches, &id);
    end(scene, 0);
    assert_int_equal(scene->n_ends, 0);
    assert_false(has(scene, 5));
    assert_true(has(scene, 6));
}

/* SPDX-License-Identifier: MIT */
/* Listening while no descriptors are left: it waits, and continues when there are some. */

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit_test.h"
#include "wire/listening.h"

#define LACK_MS     500
#define DEADLINE_MS 10000

struct world {
    struct event_base *base;
    int accepted, listener, client;
};

static void on_accept(void *arg, int fd)
{
    struct world *world = arg;
    world->accepted++;
    (void)close(fd);
    (void)event_base_loopbreak(world->base);
}

static void run(struct world *world, int ms)
{
    const struct timeval most = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    (void)event_base_loopexit(world->base, &most);
    (void)event_base_dispatch(world->base);
}

static void make_sockets(struct world *world)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX }; // bound to a name of the kernel's choice
    socklen_t length = sizeof(address);
    world->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    world->client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(world->listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(world->listener, 4), 0);
    assert_int_equal(getsockname(world->listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(world->client, (struct sockaddr *)&address, length), 0);
}

/* Leaves no descriptor that could be opened. */
static rlim_t take_descriptors(const struct world *world)
{
    struct rlimit files;
    int next = dup(world->client);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    rlim_t before = files.rlim_cur;
    files.rlim_cur = (rlim_t)next;
    (void)close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    return before;
}

static int64_t used_ms(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

TEST(without_descriptors_it_waits_and_does_not_spin)
{
    struct world world = { .base = event_base_new() };
    make_sockets(&world);
    struct listening *listening = listening_new(world.base, world.listener, on_accept, &world);
    assert_non_null(listening);
    rlim_t before = take_descriptors(&world);
    int64_t begin_ms = used_ms();
    run(&world, LACK_MS);
    assert_int_equal(world.accepted, 0);
    assert_true(used_ms() - begin_ms < LACK_MS / 4);
    struct rlimit files;
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = before;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    run(&world, DEADLINE_MS);
    assert_int_equal(world.accepted, 1);
    listening_free(listening);
    (void)close(world.client);
    event_base_free(world.base);
}

#define CROWD 100

static void on_accept_one(void *arg, int fd)
{
    struct world *world = arg;
    world->accepted++;
    (void)close(fd);
}

TEST(a_crowd_of_clients_leaves_room_for_other_events)
{
    struct world world = { .base = event_base_new() };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t length = sizeof(address);
    int crowd[CROWD];
    make_sockets(&world);
    assert_int_equal(listen(world.listener, CROWD + 1), 0);
    assert_int_equal(getsockname(world.listener, (struct sockaddr *)&address, &length), 0);
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(crowd[i], (struct sockaddr *)&address, length), 0);
    }
    struct listening *listening = listening_new(world.base, world.listener, on_accept_one, &world);
    (void)event_base_loop(world.base, EVLOOP_ONCE);
    assert_in_range(world.accepted, 1, CROWD / 2);
    while (world.accepted < CROWD + 1)
        (void)event_base_loop(world.base, EVLOOP_ONCE);
    listening_free(listening);
    for (size_t i = 0; i < CROWD; i++)
        (void)close(crowd[i]);
    (void)close(world.client);
    event_base_free(world.base);
}

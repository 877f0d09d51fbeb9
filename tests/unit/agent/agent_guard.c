/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/guard.h"
#include "unit_test.h"

#define LOCK "lock"

static char dir_path[] = "/tmp/mgpu-guard-XXXXXX";
static int lock_dir;
static struct event_base *base;

static void on_taken(void *arg)
{
    bool *is_taken = arg;
    *is_taken = true;
}

static struct guard *open_guard(bool *ret_is_taken, bool *later)
{
    struct guard *guard;
    struct error err = { 0 };
    if (guard_open(base, lock_dir, LOCK, on_taken, later, &guard, ret_is_taken, &err) < 0)
        fail_msg("%s", err.message);
    return guard;
}

TEST(a_free_lock_is_taken_at_once)
{
    bool is_taken, later = false;
    struct guard *guard = open_guard(&is_taken, &later);
    assert_true(is_taken);
    guard_close(guard);
}

TEST(a_held_lock_is_taken_when_its_holder_leaves)
{
    bool is_taken, later = false;
    struct guard *first = open_guard(&is_taken, &later);
    struct guard *second = open_guard(&is_taken, &later);
    assert_false(is_taken);
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
    assert_false(later);
    guard_close(first);
    (void)event_base_dispatch(base); // ends when nothing is left to wait for
    assert_true(later);
    guard_close(second);
}

TEST(one_that_waits_can_give_up)
{
    bool is_taken, later = false;
    struct guard *first = open_guard(&is_taken, &later);
    struct guard *second = open_guard(&is_taken, &later);
    guard_close(second);
    guard_close(first);
    struct guard *third = open_guard(&is_taken, &later);
    assert_true(is_taken);
    guard_close(third);
}

int main(void)
{
    if (mkdtemp(dir_path) == NULL)
        return EXIT_FAILURE;
    lock_dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base = event_base_new();
    int failed = unit_tests_run(NULL, NULL);
    event_base_free(base);
    (void)unlinkat(lock_dir, LOCK, 0);
    (void)rmdir(dir_path);
    return failed;
}

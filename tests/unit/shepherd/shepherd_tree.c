/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shepherd/tree.h"

/* A child with a grandchild in another session; both wait for a signal. Returns when both are there. */
static pid_t start_family(void)
{
    int pair[2];
    char byte;
    assert_int_equal(pipe(pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            (void)setsid();
            (void)!write(pair[1], "x", 1);
        }
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(pair[0], &byte, 1), 1);
    (void)close(pair[0]);
    (void)close(pair[1]);
    return pid;
}

static int reap_all(void)
{
    int count = 0;
    while (waitpid(-1, NULL, 0) > 0)
        count++;
    return count;
}

static void all_descendants_are_signalled(void **state)
{
    struct tree tree = { .cgroup_fd = -1, .root = getpid() };
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    (void)start_family();
    (void)start_family();
    assert_int_equal(tree_signal(&tree, SIGKILL), 4);
    assert_int_equal(reap_all(), 4);
    assert_int_equal(tree_signal(&tree, SIGKILL), 0);
}

static void the_spared_one_lives_and_its_children_do_not(void **state)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = start_family();
    struct tree tree = { .cgroup_fd = -1, .root = getpid(), .spare = pid };
    assert_int_equal(tree_signal(&tree, SIGKILL), 1);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    (void)kill(pid, SIGKILL);
    assert_true(reap_all() >= 1);
}

static void without_a_root_nobody_is_signalled(void **state)
{
    struct tree tree = { .cgroup_fd = -1 };
    assert_int_equal(tree_signal(&tree, SIGKILL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_descendants_are_signalled),
        cmocka_unit_test(the_spared_one_lives_and_its_children_do_not),
        cmocka_unit_test(without_a_root_nobody_is_signalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shepherd/processes/tree.h"
#include "unit_test.h"

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

TEST(all_descendants_are_signalled)
{
    struct tree tree = { .cgroup_fd = -1, .root = getpid() };
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    (void)start_family();
    (void)start_family();
    assert_int_equal(tree_signal(&tree, SIGKILL), 4);
    assert_int_equal(reap_all(), 4);
    assert_int_equal(tree_signal(&tree, SIGKILL), 0);
}

TEST(the_spared_one_lives_and_its_children_do_not)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = start_family();
    struct tree tree = { .cgroup_fd = -1, .root = getpid(), .spare = pid };
    assert_int_equal(tree_signal(&tree, SIGKILL), 1);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    (void)kill(pid, SIGKILL);
    assert_true(reap_all() >= 1);
}

/* A child in its own PID namespace, or 0: this user cannot create one. */
static pid_t start_contained(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) < 0)
            _exit(1);
        pid_t inner = fork(); // the first of the namespace
        int status = 0;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (inner == 0)
            for (;;)
                (void)pause();
        (void)waitpid(inner, &status, 0);
        _exit(0);
    }
    siginfo_t ended = { 0 };
    char path[64];
    for (;;) {
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
        FILE *children = fopen(path, "re");
        int c = children != NULL ? fgetc(children) : EOF;
        if (children != NULL)
            (void)fclose(children);
        if (c != EOF)
            return pid;
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG) == 0 && ended.si_pid == pid)
            return 0;
    }
}

TEST(a_signal_goes_to_what_is_in_the_container_and_the_kill_to_all)
{
    struct tree tree = { .cgroup_fd = -1, .root = getpid(), .is_contained = true };
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t outside = start_family();
    assert_int_equal(tree_signal(&tree, SIGCONT), 2); // nothing is contained: all of them
    pid_t runtime = start_contained();
    if (runtime == 0) {
        assert_int_equal(tree_signal(&tree, SIGKILL), 2);
        (void)reap_all();
        skip();
    }
    assert_int_equal(tree_signal(&tree, SIGCONT), 1);
    assert_int_equal(waitpid(outside, NULL, WNOHANG), 0);
    assert_true(tree_signal(&tree, SIGKILL) >= 3);
    (void)reap_all();
}

TEST(without_a_root_nobody_is_signalled)
{
    struct tree tree = { .cgroup_fd = -1 };
    assert_int_equal(tree_signal(&tree, SIGKILL), 0);
}

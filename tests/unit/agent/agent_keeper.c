/* SPDX-License-Identifier: MIT */
/* The keeper executes its own program again, so that this program is also the worker of its tests. */

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/keeper.h"
#include "unit_test.h"

#define DEADLINE_MS 10000

struct keeper {
    pid_t pid;
    int control;
};

/* Says its pid and leaves when the link closes. */
static int be_worker(void)
{
    pid_t pid = getpid();
    char byte;
    if (write(3, &pid, sizeof(pid)) != sizeof(pid))
        return EXIT_FAILURE;
    return read(3, &byte, 1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static struct keeper start_keeper(void)
{
    char name[] = "agent_keeper", option[] = "--some-option";
    char *argv[] = { name, option, NULL };
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(pair[0]);
        _exit(keeper_run(pair[1], 2, argv));
    }
    (void)close(pair[1]);
    return (struct keeper){ pid, pair[0] };
}

static void wait_readable(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&ready, 1, DEADLINE_MS), 1);
}

static int receive_link(int control)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } space;
    char byte;
    int fd;
    struct iovec payload = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &payload, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof(space)
    };
    wait_readable(control);
    assert_int_equal(recvmsg(control, &message, MSG_CMSG_CLOEXEC), 1);
    assert_non_null(CMSG_FIRSTHDR(&message));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

static pid_t read_pid(int link)
{
    pid_t pid;
    wait_readable(link);
    assert_int_equal(read(link, &pid, sizeof(pid)), sizeof(pid));
    return pid;
}

static void end_keeper(struct keeper *keeper)
{
    int status;
    (void)close(keeper->control);
    assert_int_equal(waitpid(keeper->pid, &status, 0), keeper->pid);
    assert_int_equal(status, 0);
}

TEST(a_worker_that_is_killed_is_started_again_with_a_new_link)
{
    struct keeper keeper = start_keeper();
    pid_t last = 0;
    for (int i = 0; i < 3; i++) {
        int link = receive_link(keeper.control);
        pid_t pid = read_pid(link);
        assert_int_not_equal(pid, last);
        last = pid;
        assert_int_equal(kill(pid, SIGKILL), 0);
        (void)close(link);
    }
    (void)close(receive_link(keeper.control));
    end_keeper(&keeper);
}

TEST(a_closed_link_ends_the_worker_and_brings_the_next)
{
    struct keeper keeper = start_keeper();
    int link = receive_link(keeper.control);
    pid_t first = read_pid(link);
    (void)close(link);
    link = receive_link(keeper.control);
    assert_int_not_equal(read_pid(link), first);
    (void)close(link);
    end_keeper(&keeper);
}

TEST(the_keeper_leaves_with_the_controller_and_its_worker_too)
{
    char byte;
    struct keeper keeper = start_keeper();
    int link = receive_link(keeper.control);
    (void)read_pid(link);
    end_keeper(&keeper);
    assert_int_equal(shutdown(link, SHUT_WR), 0);
    wait_readable(link);
    assert_int_equal(read(link, &byte, 1), 0); // nobody holds the other end
    (void)close(link);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--some-option") == 0 && strcmp(argv[2], "--link-fd=3") == 0)
        return be_worker();
    return unit_tests_run(NULL, NULL);
}

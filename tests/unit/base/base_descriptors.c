/* SPDX-License-Identifier: MIT */
/* A packet with a descriptor along arrives whole or leaves nothing behind. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "unit_test.h"

static int pair[2];

static int setup(void **state)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
    (void)close(pair[0]);
    (void)close(pair[1]);
    return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

/* The lowest free descriptor: the same before and after if nothing is left open. */
static int lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    return fd;
}

CASE(a_descriptor_comes_along_and_is_closed_on_exec)
{
    int packet = 7, received = 0, fd = -1;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(descriptor_send(pair[0], &packet, sizeof(packet), null), 0);
    assert_int_equal(descriptor_receive(pair[1], &received, sizeof(received), &fd), 1);
    assert_int_equal(received, 7);
    assert_true(fd >= 0 && fd != null);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    (void)close(fd);
    (void)close(null);
}

CASE(a_packet_may_come_alone)
{
    int packet = 7, received = 0, fd = 99;
    assert_int_equal(descriptor_send(pair[0], &packet, sizeof(packet), -1), 0);
    assert_int_equal(descriptor_receive(pair[1], &received, sizeof(received), &fd), 1);
    assert_int_equal(fd, -1);
}

CASE(a_packet_of_another_length_leaves_nothing_open)
{
    int free_before = lowest_free(), fd = -1;
    char packet[8] = "1234567", received[4];
    assert_int_equal(descriptor_send(pair[0], packet, sizeof(packet), pair[0]), 0);
    assert_int_equal(descriptor_receive(pair[1], received, sizeof(received), &fd), -EBADMSG);
    assert_int_equal(descriptor_send(pair[0], packet, 2, pair[0]), 0);
    assert_int_equal(descriptor_receive(pair[1], received, sizeof(received), &fd), -EBADMSG);
    assert_int_equal(fd, -1);
    assert_int_equal(lowest_free(), free_before);
}

CASE(a_second_packet_is_not_offered_before_the_first_is_read)
{
    int packet = 7, received = 0, fd = -1;
    assert_int_equal(descriptor_offer(pair[0], &packet, sizeof(packet), pair[0]), 0);
    assert_int_equal(descriptor_offer(pair[0], &packet, sizeof(packet), pair[0]), -EAGAIN);
    assert_int_equal(descriptor_receive(pair[1], &received, sizeof(received), &fd), 1);
    (void)close(fd);
    assert_int_equal(descriptor_offer(pair[0], &packet, sizeof(packet), -1), 0);
    assert_int_equal(descriptor_receive(pair[1], &received, sizeof(received), &fd), 1);
}

CASE(the_end_of_the_other_side_is_reported)
{
    int packet = 7, fd = -1;
    (void)close(pair[0]);
    assert_int_equal(descriptor_receive(pair[1], &packet, sizeof(packet), &fd), 0);
    assert_int_equal(descriptor_send(pair[1], &packet, sizeof(packet), -1), -EPIPE);
}

CASE(more_are_allowed_up_to_the_hard_limit)
{
    struct rlimit now, few = { .rlim_cur = 64, .rlim_max = 128 };
    pid_t child = fork(); // the hard limit does not come back
    if (child == 0) {
        bool is_right = setrlimit(RLIMIT_NOFILE, &few) == 0 && descriptors_allow(100) == 64 &&
                        getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 100 && now.rlim_max == 128 &&
                        descriptors_allow(100) == 0 && descriptors_allow(1000) == 100 &&
                        getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 128 &&
                        descriptors_allow(1000) == 0;
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

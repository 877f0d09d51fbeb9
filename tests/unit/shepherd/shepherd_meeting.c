/* SPDX-License-Identifier: MIT */
/* The port where the parts of a job meet. The ports here are far from those that small job numbers lead to.
 */

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "job/launch.h"
#include "shepherd/meeting.h"
#include "unit_test.h"

#define FIRST 29930U

/* Another program's listener, on one address. */
static int listen_on(uint32_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = { htonl(INADDR_LOOPBACK) }
    };
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
        return -1;
    return take_fd(&fd);
}

TEST(a_port_that_somebody_has_is_not_chosen)
{
    struct meeting probe, meeting;
    meeting_init(&probe);
    meeting_init(&meeting);
    meeting_reserve(&probe, FIRST);
    uint32_t taken = probe.port;
    assert_in_range(taken, MEETING_PORT_FIRST, MEETING_PORT_FIRST + MEETING_PORTS - 1);
    meeting_close(&probe);
    _cleanup_close_ int listener = listen_on(taken);
    assert_true(listener >= 0);
    meeting_reserve(&meeting, taken);
    assert_in_range(meeting.port, MEETING_PORT_FIRST, MEETING_PORT_FIRST + MEETING_PORTS - 1);
    assert_int_not_equal(meeting.port, taken);
    meeting_close(&meeting);
}

TEST(two_jobs_of_a_node_get_two_ports_also_while_the_first_has_not_bound_its_own)
{
    struct meeting one, two;
    meeting_init(&one);
    meeting_init(&two);
    meeting_reserve(&one, FIRST);
    assert_int_equal(listen_on(one.port), -1);
    meeting_reserve(&two, one.port);
    assert_int_not_equal(two.port, one.port);
    meeting_close(&two);
    meeting_hand_over(&one);
    meeting_reserve(&two, one.port);
    assert_int_not_equal(two.port, one.port);
    _cleanup_close_ int listener = listen_on(one.port);
    assert_true(listener >= 0);
    meeting_close(&two);
    meeting_close(&one);
}

TEST(a_port_is_looked_for_from_the_start_again_behind_the_last)
{
    struct meeting last, next;
    meeting_init(&last);
    meeting_init(&next);
    meeting_reserve(&last, MEETING_PORT_FIRST + MEETING_PORTS - 1);
    meeting_reserve(&next, MEETING_PORT_FIRST + MEETING_PORTS - 1);
    assert_true(next.port < last.port);
    meeting_close(&next);
    meeting_close(&last);
}

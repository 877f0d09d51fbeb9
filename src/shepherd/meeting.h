/* SPDX-License-Identifier: MIT */
/* The rendezvous TCP port of a job on several nodes: chosen and reserved on the node of rank 0. */
#pragma once

#include <stdint.h>

struct meeting {
    uint32_t port; // 0: not requested, or none available
    int tcp_fd;    // prevents others from binding the port while open; -1
    int name_fd;   // prevents this node from giving the port to another job while open; -1
};

void meeting_init(struct meeting *meeting);

/* Finds a free port, starting at `first`, within the range of job/launch.h; if that is exhausted, any other.
 * `port` is 0 if there is none. */
void meeting_reserve(struct meeting *meeting, uint32_t first);

/* Releases the port for the job's own listener. Other jobs are not given it before meeting_close(). */
void meeting_hand_over(struct meeting *meeting);

void meeting_close(struct meeting *meeting);

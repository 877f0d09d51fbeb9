/* SPDX-License-Identifier: MIT */
/* The TCP port at which the ranks of a job on several nodes may meet: chosen on the node of rank 0, and kept.
 */
#pragma once

#include <stdint.h>

struct meeting {
    uint32_t port; // 0: none was asked for, or none could be had
    int tcp_fd;    // nobody else can bind the port while this is open; -1
    int name_fd;   // no other job of this node is given the port while this is open; -1
};

void meeting_init(struct meeting *meeting);

/* Finds a port that nobody has, beginning at `first`, which is one of the range of job/launch.h; when all of
 * these are taken, any other. Without one `port` stays 0. */
void meeting_reserve(struct meeting *meeting, uint32_t first);

/* Frees the port for the job's own listener. Other jobs are not given it before meeting_close(). */
void meeting_hand_over(struct meeting *meeting);

void meeting_close(struct meeting *meeting);

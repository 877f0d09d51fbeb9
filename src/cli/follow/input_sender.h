/* SPDX-License-Identifier: MIT */
/* The process that sends standard input to a job, and the orders it gets from the one that follows the job.
 */
#pragma once

#include <stdint.h>

#include "cli/options/call.h"

enum input_word {
    INPUT_RUN,   // the job runs, in this attempt
    INPUT_OVER,  // it has ended
    INPUT_LEAVE, // the follower leaves the job; the end of its socket means the same
};

struct input_order {
    enum input_word word;
    int64_t attempt;
};

/* Reports that bytes of a pipe were read in vain, even if messages are off, because other readers may miss
 * them. */
void input_say_unused(uint64_t bytes);

/* Runs until the job ends or the other side of `order_fd` closes. */
_Noreturn void input_send(struct call *call, uint64_t job, int order_fd);

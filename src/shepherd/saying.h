/* SPDX-License-Identifier: MIT */
/* The pipe into which a job says how far it is ($MGPU_NOTIFY), and the spool file that has it for the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"
#include "shepherd/said.h"

struct saying {
    int pipe_fd;           // both ends, so that it is never without a reader; -1: the step has none
    int file_fd;           // the spool file "said", or -1
    int64_t rest_until_ms; // boot clock: the pipe is not looked at before
    struct said said;
};

void saying_init(struct saying *saying);
void saying_close(struct saying *saying);

/* Makes the pipe that the spec names, and gives it to the job's user; 0 when it names none. Before the gate.
 */
int saying_make(struct saying *saying, const struct launch_spec *spec, int spool_fd);

/* Opens both again, with what was said before. Nothing is lost when that fails but what comes later. */
void saying_adopt(struct saying *saying, const struct launch_spec *spec, int spool_fd);

/* For poll(2): the descriptor to look at, or -1 while it rests; and for how long at most, or -1. */
int saying_source(const struct saying *saying, int64_t boot_ms);
int saying_wait_ms(const struct saying *saying, int64_t boot_ms);

/* Takes what is in the pipe, as much as is fair. True when CHECKPOINTED was there. */
bool saying_read(struct saying *saying, int64_t boot_ms);

/* Takes all that is in the pipe now, so that what comes later is known to be said later. */
bool saying_drain(struct saying *saying);

/* It is told to save its work, or need not any more: whoever adopts the step knows it too. */
void saying_ask_save(struct saying *saying, enum spool_save save);
enum spool_save saying_save(const struct saying *saying);

/* The step is over. True when CHECKPOINTED was among its last words. */
bool saying_finish(struct saying *saying);

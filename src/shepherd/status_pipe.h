/* SPDX-License-Identifier: MIT */
/* The pipe into which a job says how far it is ($MGPU_NOTIFY), and the spool file that has it for the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"
#include "shepherd/status_parser.h"

struct status_pipe {
    int pipe_fd;           // both ends, so that it is never without a reader; -1: the step has none
    int file_fd;           // the spool file "said", or -1
    int64_t rest_until_ms; // boot clock: the pipe is not looked at before
    struct status_parser said;
};

void status_pipe_init(struct status_pipe *status_pipe);
void status_pipe_close(struct status_pipe *status_pipe);

/* Makes the pipe that the spec names, and gives it to the job's user; 0 when it names none. Before the gate.
 */
int status_pipe_make(struct status_pipe *status_pipe, const struct launch_spec *spec, int spool_fd);

/* Opens both again, with what was said before. Nothing is lost when that fails but what comes later. */
void status_pipe_adopt(struct status_pipe *status_pipe, const struct launch_spec *spec, int spool_fd);

/* For poll(2): the descriptor to look at, or -1 while it rests; and for how long at most, or -1. */
int status_pipe_source(const struct status_pipe *status_pipe, int64_t boot_ms);
int status_pipe_wait_ms(const struct status_pipe *status_pipe, int64_t boot_ms);

/* Takes what is in the pipe, as much as is fair. True when CHECKPOINTED was there. */
bool status_pipe_read(struct status_pipe *status_pipe, int64_t boot_ms);

/* Takes all that is in the pipe now, so that what comes later is known to be said later. */
bool status_pipe_drain(struct status_pipe *status_pipe);

/* It is told to save its work, or need not any more: whoever adopts the step knows it too. */
void status_pipe_ask_save(struct status_pipe *status_pipe, enum spool_save save);
enum spool_save status_pipe_save(const struct status_pipe *status_pipe);

/* The step is over. True when CHECKPOINTED was among its last words. */
bool status_pipe_finish(struct status_pipe *status_pipe);

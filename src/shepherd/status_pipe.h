/* SPDX-License-Identifier: MIT */
/* The pipe for status reports of a job ($MGPU_NOTIFY), and the spool file that passes them to the agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"
#include "shepherd/status_parser.h"

struct status_pipe {
    int pipe_fd;           // opened for reading and writing, so that it always has a reader; -1: none
    int file_fd;           // the spool file "said"; -1: nothing was stored so far
    int spool_fd;          // the directory of that file; borrowed
    int64_t rest_until_ms; // boot clock: the pipe is not read before this time
    struct status_parser parser;
};

void status_pipe_init(struct status_pipe *status_pipe);
void status_pipe_close(struct status_pipe *status_pipe);

/* Creates the pipe named in the spec, owned by the job's user, before the gate opens. Returns 0 if the spec
 * names none. */
int status_pipe_make(struct status_pipe *status_pipe, const struct launch_spec *spec, int spool_fd);

/* Opens the pipe and the file again and reads earlier reports. On failure, only later reports are lost. */
void status_pipe_adopt(struct status_pipe *status_pipe, const struct launch_spec *spec, int spool_fd);

/* For poll(2): the descriptor, or -1 while reading is suspended; and the maximum wait, or -1. */
int status_pipe_source(const struct status_pipe *status_pipe, int64_t boot_ms);
int status_pipe_wait_ms(const struct status_pipe *status_pipe, int64_t boot_ms);

/* Reads from the pipe, at a bounded rate. True if CHECKPOINTED was received. */
bool status_pipe_read(struct status_pipe *status_pipe, int64_t boot_ms);

/* Reads everything in the pipe now, so that later reports are known to be new. */
bool status_pipe_drain(struct status_pipe *status_pipe);

/* Records for an adopting shepherd whether the job has been asked to save its work. */
void status_pipe_ask_save(struct status_pipe *status_pipe, enum spool_save save);
enum spool_save status_pipe_save(const struct status_pipe *status_pipe);

/* Called when the step has ended. True if CHECKPOINTED was among its last reports. */
bool status_pipe_finish(struct status_pipe *status_pipe);

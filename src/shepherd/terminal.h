/* SPDX-License-Identifier: MIT */
/*
 * The terminal of a step (or the pipes of an exec step), from the shepherd's side. The bytes are moved by a
 * process of its own, T (terminal_process.c): a disk that hangs must not keep S from obeying, and the death
 * of S must not hang up on the job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/terminal.h"
#include "job/launch.h"

#define TERMINAL_SOURCES 2 // standard output and error; of a terminal both are one

struct terminal {
    bool is_open;
    int sink_fd;                      // input of the step goes in here
    int source_fds[TERMINAL_SOURCES]; // its output comes from here; -1: none
    int job_fds[3];                   // what the step has for 0, 1 and 2
    int door_fd;                      // visits come in here
    int seen_fd;                      // when a byte last came through, or -1
    int channel_fd;                   // packets from and to T, -1 when there is no T
    pid_t pid;                        // of T, 0: none
};

/* S to T: the step is over. */
struct terminal_end {
    uint32_t magic; // TERMINAL_END_MAGIC
    int32_t code;
    char text[TERMINAL_TEXT_MAX]; // terminated
};
#define TERMINAL_END_MAGIC 0x6d677478U

/* T to S: a struct spool_command of the viewer, or this word: all output is in the log. */
#define TERMINAL_DRAINED "d"

void terminal_init(struct terminal *terminal);

/* Makes the terminal, or the pipes of an exec step without one, and binds the door in the working directory.
 */
int terminal_open(struct terminal *terminal, const struct launch_spec *spec);

/* Starts T, which takes over the ends that are ours. */
int terminal_start(struct terminal *terminal, const struct launch_spec *spec, int log_fd);

/* Tells T how the step ended, and waits a little until all output is in the log. */
void terminal_finish(struct terminal *terminal, const struct launch_exit *exit_record, bool is_waited);

/* In a child that is not T: nothing of S's ends may live on in it. */
void terminal_drop(const struct terminal *terminal);

void terminal_close(struct terminal *terminal);

/* --- T --- */

struct terminal_setup {
    const struct launch_spec *spec;
    int sink_fd, source_fds[TERMINAL_SOURCES];
    int door_fd, channel_fd, log_fd, seen_fd;
};

/* T's whole life. */
_Noreturn void terminal_run(const struct terminal_setup *setup);

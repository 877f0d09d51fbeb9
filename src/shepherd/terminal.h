/* SPDX-License-Identifier: MIT */
/*
 * The terminal of a step, the pipes of an exec step, or the pipe of a job whose standard input is sent by a
 * client, as seen by the shepherd. A separate process, T
 * (terminal_process.c), moves the bytes: a hanging disk must not keep S from carrying out commands, and the
 * death of S must not hang up the job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/terminal.h"
#include "job/launch.h"

#define TERMINAL_SOURCES 2 // standard output and error; the same on a terminal

struct death_timer;

struct terminal {
    bool is_open;
    int sink_fd;                      // the step's input is written here
    int source_fds[TERMINAL_SOURCES]; // the step's output is read here; -1: none
    int job_fds[3];                   // descriptors 0, 1 and 2 of the step
    int door_fd;                      // visits arrive here
    int seen_fd;                      // file with the time of the last input or output, or -1
    int channel_fd;                   // packets from and to T, -1 without T
    pid_t pid;                        // of T, 0: none
    int pidfd;                        // of T, -1: none
};

/* S to T: the step has ended. */
struct terminal_end {
    uint32_t magic; // TERMINAL_END_MAGIC
    int32_t code;
    char text[TERMINAL_TEXT_MAX]; // terminated
};
#define TERMINAL_END_MAGIC 0x6d677478U

/* T to S: a struct spool_command of the viewer, or this byte: all output is in the log. */
#define TERMINAL_DRAINED "d"

void terminal_init(struct terminal *terminal);

/* Creates the terminal or the pipes, and binds the socket for visits in the
 * working directory. */
int terminal_open(struct terminal *terminal, const struct launch_spec *spec);

/* Starts T, which takes over this side's ends. `host_fd` is the pidfd of the job's own init for an exec step,
 * else -1. */
int terminal_start(struct terminal *terminal, const struct launch_spec *spec, int log_fd, int host_fd);

enum terminal_await {
    TERMINAL_AWAIT_NOTHING,
    TERMINAL_AWAIT_LOG,    // for a short time, until all output is in the log
    TERMINAL_AWAIT_CLIENT, // until the client has received the end, or has not returned in time: it finds T
                           // in the spool directory
};

/* Sends T how the step ended, and waits. If its user has stopped T, it is continued, and killed if that does
 * not help. */
void terminal_finish(
    struct terminal *terminal, const struct launch_exit *exit_record, enum terminal_await await);

/* In a child other than T: closes all ends that belong to S. */
void terminal_drop(const struct terminal *terminal);

void terminal_close(struct terminal *terminal);

/* --- T --- */

struct terminal_setup {
    const struct launch_spec *spec;
    int sink_fd, source_fds[TERMINAL_SOURCES];
    int door_fd, channel_fd, log_fd, seen_fd, host_fd;
};

/* Closes everything else: no descriptor of S may stay open in T, above all not the lock. */
void terminal_keep_only(const struct terminal_setup *setup);

/* Prepares T, whichever main function it has: a session of its own under the name `name`, with the ends of
 * `setup` only, as the user and undumpable. Opens `death`, the timer that ends T. Exits if it cannot become
 * the user. */
void terminal_become_user(const struct terminal_setup *setup, const char *name, struct death_timer *death);

/* The main function of T. */
_Noreturn void terminal_run(const struct terminal_setup *setup);

/* The same for a job whose standard input is sent by a client (input_process.c). It has no sources. */
_Noreturn void input_run(const struct terminal_setup *setup);

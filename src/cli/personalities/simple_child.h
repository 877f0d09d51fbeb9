/* SPDX-License-Identifier: MIT */
/* A program of this installation, run in the foreground as a child that this process watches. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

struct simple_child {
    pid_t pid;
    int pid_fd, signal_fd;
    int said_fd; // what it writes to standard error, or -1
};

#define SIMPLE_CHILD_NONE                                                                                    \
    {                                                                                                        \
        .pid_fd = -1, .signal_fd = -1, .said_fd = -1                                                         \
    }

/*
 * Starts it; `words` begin with its name. `input` becomes its standard input, -1: nothing to read. With
 * `is_heard` its standard error comes through said_fd. It is asked to end when this process is killed.
 */
int simple_child_start(
    struct simple_child *child, const struct strings *words, int input, bool is_heard, struct error *err);

/* Waits so long (-1: for ever) for something: 1 when said_fd can be read, or `also_fd` (-1: none), 0 when the
 * time is up, or after a signal, which is passed on; -ECHILD when it has ended. */
int simple_child_wait(struct simple_child *child, int also_fd, int wait_ms);

/* After -ECHILD: its exit status, as a shell says it. */
int simple_child_status(struct simple_child *child);

/* Also ends it, if it still runs. */
void simple_child_clear(struct simple_child *child);

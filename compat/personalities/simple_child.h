/* SPDX-License-Identifier: MIT */
/* Runs a program of this installation as a child in the foreground. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

struct simple_child {
    pid_t pid;
    int pid_fd, signal_fd;
    int stderr_fd; // its standard error, or -1
};

#define SIMPLE_CHILD_NONE                                                                                    \
    {                                                                                                        \
        .pid_fd = -1, .signal_fd = -1, .stderr_fd = -1                                                       \
    }

/*
 * Starts it; `words` begin with its name. `input` becomes its standard input, -1: /dev/null. With
 * `is_captured`, its standard error can be read from stderr_fd. If this process is killed, the child gets a
 * signal to exit.
 */
int simple_child_start(
    struct simple_child *child, const struct strings *words, int input, bool is_captured, struct error *err);

/* Waits up to this time (-1: forever): 1 if stderr_fd or `also_fd` (-1: none) is readable, 0 on timeout or
 * after a signal, which is forwarded; -ECHILD when it has ended. */
int simple_child_wait(struct simple_child *child, int also_fd, int wait_ms);

/* After -ECHILD: its exit status, as in a shell. */
int simple_child_status(struct simple_child *child);

/* Also ends the child if it is still running. */
void simple_child_clear(struct simple_child *child);

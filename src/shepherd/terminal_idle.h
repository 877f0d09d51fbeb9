/* SPDX-License-Identifier: MIT */
/*
 * How long there has been no input or output on the terminal of a step. T writes the time of the last byte to
 * the spool file "tty-seen". The shepherd that watches the step, whether it started or adopted the step,
 * reads the file and ends the step. Neither depends on the other being alive.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"

#define TERMINAL_WARNING_MAX_MS 60000 // a warning is shown on the terminal this long before the end

/* --- the watching shepherd --- */

struct terminal_idle {
    int64_t limit_ms; // 0: none
    int spool_fd;     // borrowed
    int timer_fd;     // for the next check, or -1
    bool is_held;
};

void terminal_idle_open(struct terminal_idle *idle, const struct launch_spec *spec, int spool_fd);
void terminal_idle_close(struct terminal_idle *idle);

/* True if it has been idle for too long; otherwise arms the timer. */
bool terminal_idle_is_over(struct terminal_idle *idle);

/* A suspended job is not idle. When it is continued, the idle time starts again at zero. */
void terminal_idle_hold(struct terminal_idle *idle, bool is_held);

/* --- T --- */

/* Creates the file in the working directory, which is the spool directory; returns a descriptor or a negative
 * errno. */
int terminal_idle_make(void);

/* The state of the warning in T. */
struct terminal_warning {
    int64_t limit_ms; // 0: none
    int seen_fd;
    int64_t due_ms; // next check, boot clock; INT64_MAX: the warning was shown
};

void terminal_warning_open(struct terminal_warning *warning, const struct launch_spec *spec, int seen_fd);

/* Called after input or output. */
void terminal_warning_byte(struct terminal_warning *warning);

/* Milliseconds until the next check, -1: none. */
int64_t terminal_warning_wait(const struct terminal_warning *warning);

/* Writes the warning, terminated, and returns true if it is due. */
bool terminal_warning_is_due(struct terminal_warning *warning, char *text, size_t size);

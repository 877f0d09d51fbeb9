/* SPDX-License-Identifier: MIT */
/*
 * For how long nothing has gone through the terminal of a step. T writes the moment of the last byte into the
 * spool file "tty-seen"; whoever watches the step, the shepherd or one that adopted it, reads it and ends the
 * step. So neither needs the other to live.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/launch.h"

#define TERMINAL_WARNING_MAX_MS 60000 // so long before the end it is said on the terminal

/* --- who watches the step --- */

struct terminal_idle {
    int64_t limit_ms; // 0: none
    int spool_fd;     // borrowed
    int timer_fd;     // when to look again, or -1
    bool is_held;
};

void terminal_idle_open(struct terminal_idle *idle, const struct launch_spec *spec, int spool_fd);
void terminal_idle_close(struct terminal_idle *idle);

/* True when it has been idle for too long; arms the timer when it has not. */
bool terminal_idle_is_over(struct terminal_idle *idle);

/* A job that stands still cannot be idle. When it goes on the time begins anew. */
void terminal_idle_hold(struct terminal_idle *idle, bool is_held);

/* --- T --- */

/* Makes the file in the working directory, which is the spool directory; a descriptor or a negative errno. */
int terminal_idle_make(void);

/* What T has of it. */
struct terminal_warning {
    int64_t limit_ms; // 0: none
    int seen_fd;
    int64_t due_ms; // when to look next, boot clock; INT64_MAX: it was said
};

void terminal_warning_open(struct terminal_warning *warning, const struct launch_spec *spec, int seen_fd);

/* Bytes went through. */
void terminal_warning_byte(struct terminal_warning *warning);

/* Milliseconds until it has to look, -1: it has not. */
int64_t terminal_warning_wait(const struct terminal_warning *warning);

/* The sentence for the terminal when it is time for it, terminated; false when it is not. */
bool terminal_warning_is_due(struct terminal_warning *warning, char *text, size_t size);

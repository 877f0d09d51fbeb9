/* SPDX-License-Identifier: MIT */
/* The parts of T (terminal_process.c): its viewers (terminal_visits.c) and the output of its step
 * (terminal_output.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shepherd/input_pipe.h"
#include "shepherd/processes/death_timer.h"
#include "shepherd/terminal.h"
#include "shepherd/terminal_exec.h"
#include "shepherd/terminal_history.h"
#include "shepherd/terminal_idle.h"
#include "shepherd/terminal_viewer.h"

#define TERMINAL_VIEWERS_MAX 16
#define TERMINAL_OVER_MS     3000  // after the end of the job, for a client that has lost its connection
#define TERMINAL_FLUSH_MS    10000 // without progress, at the end
enum phase { TERMINAL_OPEN, TERMINAL_DRAINING, TERMINAL_FLUSHING };

struct process {
    const struct terminal_setup *setup;
    bool is_kept, is_tty;
    enum phase phase;
    struct input_pipe input; // or the terminal's own end
    int source_fds[TERMINAL_SOURCES], door_fd, channel_fd;
    bool has_visit;  // an exec step's viewer has connected
    bool is_hung_up; // and has left permanently
    int host_fd;     // pidfd of the job's main init, for an exec step; -1: not awaited
    bool is_job_over;
    bool has_end;
    struct terminal_end end;
    int64_t deadline_ms; // boot clock; 0: none
    struct death_timer death;
    uint64_t serial;
    struct terminal_warning warning;
    struct history history;
    struct exec_stream exec;
    struct viewer_acts acts;
    struct viewer viewers[TERMINAL_VIEWERS_MAX];
};

/* Exits after this time, unless it is set again. */
void terminal_leave_within(struct process *p, int64_t ms);

/* How long an exec step is kept for a client that has lost its connection: not long after the end of its
 * job. */
int64_t terminal_keep_ms(const struct process *p);

/* Called when the viewer of an exec step has left permanently. */
void terminal_hang_up(struct process *p);

/* Called when a viewer has left. */
void terminal_on_gone(struct process *p);

/* Called when a visitor wants to connect. */
void terminal_on_visit(struct process *p);

/* Called once, at the start. */
void terminal_set_acts(struct process *p);

/* Called when the step accepts input again. */
void terminal_on_sink(struct process *p);

/* How much output of an exec step may be read. The step waits for its viewer; if the viewer has left, output
 * is dropped. */
size_t terminal_exec_room(const struct process *p);

/* Sends the viewer of an exec step as much as it accepts now. */
void terminal_send_exec(struct process *p);

/* True if output arrived. */
bool terminal_keep_output(struct process *p);
bool terminal_pass_on(struct process *p);

/* SPDX-License-Identifier: MIT */
/* This terminal joined to that of a job, or to a process that `exec` runs in it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/term/detach_keys.h"

enum session_result {
    SESSION_ENDED, // the other side has; *ret_status is its word, -1: it gave none
    SESSION_DETACHED,
};

struct session_options {
    uint64_t job;
    const char *path;   // job as the API's paths have it
    uint32_t rank;      // of a job on several nodes: on which
    const json_t *exec; // body of an exec, or NULL: the job's own terminal
    bool is_tty;        // the other side has a terminal
    bool is_read_only;
    bool is_input_shut;    // standard input is not passed on
    bool is_told_idleness; // when the job leaves its GPUs unused
    bool is_from_start;    // of its output; else from the last screenful on
    struct detach_keys keys;
};

/* Stays until one side leaves. A terminal's connection is made anew when mgpud was restarted; that of an exec
 * is its process's life. *ret_position: so much of the output was seen. A negative errno: it could not be
 * joined, or was lost for good. */
int session_run(struct call *call, const struct session_options *options, int *ret_status,
    uint64_t *ret_position, struct error *err);

/* True when standard input and output are a terminal, and ours to use. */
bool session_is_on_terminal(void);

/* Says how to come back. */
void session_say_detached(const struct call *call, const char *path);

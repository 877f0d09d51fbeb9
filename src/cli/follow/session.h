/* SPDX-License-Identifier: MIT */
/* Connects this terminal with that of a job, or with a process started by `exec` in it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/leaving.h"
#include "cli/options/call.h"
#include "cli/term/detach_keys.h"

enum session_result {
    SESSION_ENDED, // the other side has ended; *ret_status is the status it sent, -1: none
    SESSION_DETACHED,
};

struct session_options {
    const char *job;    // as in paths of the API
    uint32_t rank;      // of a job on several nodes
    const json_t *exec; // body of an exec, or NULL: the job's own terminal
    enum leaver leaver; // what signals do
    bool is_tty;        // the other side has a terminal
    bool is_read_only;
    bool is_input_shut;  // standard input is not forwarded
    bool shows_idleness; // report when the job leaves its GPUs unused
    bool is_from_start;  // show all output; else from the last screenful on
    struct detach_keys keys;
};

/* Runs until one side ends. A connection that was lost, for example by a restart of mgpud, is reopened.
 * *ret_position: how much of the output was shown. A negative errno: connecting failed, or the connection was
 * lost permanently. */
int session_run(struct call *call, const struct session_options *options, int *ret_status,
    uint64_t *ret_position, struct error *err);

/* True if standard input and output are a terminal in the foreground. */
bool session_is_on_terminal(void);

/* Prints how to reattach. */
void session_say_detached(const struct call *call, const char *job, bool is_queued);

/* SPDX-License-Identifier: MIT */
/* Shared by run and shell: runs a newly submitted job in the foreground. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/follow/terminal_options.h"
#include "cli/options/call.h"

/* Waits for its start, then attaches to its terminal if it has one, else follows its output; returns the exit
 * status. */
int run_job(struct call *call, const json_t *job, bool is_tty, const struct terminal_options *options,
    struct error *err);

/* Attaches to the terminal of a running job, then waits for its end; returns the exit status. */
int run_attached(struct call *call, const char *path, const struct terminal_options *options,
    bool is_read_only, bool is_from_start, struct error *err);

/* SPDX-License-Identifier: MIT */
/* What run and shell have in common: a job that was just submitted, in the foreground. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/follow/terminal_options.h"

/* Waits for its start, joins its terminal if it has one, else follows its output; the exit status. */
int run_job(struct call *call, const json_t *job, bool is_tty, const struct terminal_options *options,
    struct error *err);

/* The terminal of a job that runs, and then its end; the exit status. */
int run_attached(struct call *call, const char *path, const struct terminal_options *options,
    bool is_read_only, bool is_from_start, struct error *err);

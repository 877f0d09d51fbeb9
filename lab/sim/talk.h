/* SPDX-License-Identifier: MIT */
/* Shared by all verbs: errors, help and progress. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "lab/sim/commands.h"
#include "sched/placement/placement.h"
#include "sched/queue/policy.h"

/* "mgpu-sim: sentence" and the hint, on standard error. Returns the exit status for it. */
int talk_error(const struct error *err, int status);
/* Usage, summary and options of a verb. */
void talk_help(const struct sim_command *command, const struct option_row *rows);
/* Parses options and operands of a verb; *ret_first is the first operand. -EINVAL for a wrong number of
 * operands. */
int talk_parse(const struct sim_command *command, int argc, char **argv, const struct option_row *rows,
    void *target, int least, int most, int *ret_first, struct error *err);

/* -EINVAL: "unknown WHAT 'VALUE'", with the nearest of `names` (NULL at the end) or all of them as a hint. */
int talk_unknown(const char *what, const char *value, const char *const *names, struct error *err);
/* The policy or placement of that name; otherwise as talk_unknown(). */
int talk_policy(const char *what, const char *value, const struct policy **ret, struct error *err);
int talk_placement(const char *what, const char *value, const struct placement **ret, struct error *err);

/* Progress of a long run: a line on standard error that is overwritten and removed at the end. */
struct progress {
    bool is_on, is_shown;
    uint32_t calls;
    int64_t begin_ms, shown_ms;
};

void progress_begin(struct progress *progress, bool is_on);
void progress_show(
    struct progress *progress, size_t done, size_t total); // cheap: checks the clock only now and then
void progress_end(struct progress *progress);

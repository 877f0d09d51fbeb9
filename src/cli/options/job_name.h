/* SPDX-License-Identifier: MIT */
/*
 * Jobs by their names. Several jobs of a user may have the same name: the newest of them is rarely wrong for
 * a command that only shows something, and easily wrong for one that ends or changes a job.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"

/* What a verb does with a job that is named; the strictest rule is the default. */
enum job_name_use {
    JOB_NAME_LIVE,   // changes it, or connects to it: the only one that has not ended
    JOB_NAME_WAIT,   // waits for its end: the newest, if no other has not ended
    JOB_NAME_NEWEST, // shows it: the newest
};

/*
 * The caller's job of that name; if all have ended, the newest. An array counts as one job. -ENOENT without a
 * sentence if there is none. -ENOTUNIQ, with the jobs, if the rule leaves several. With JOB_NAME_NEWEST and
 * `must_tell`, other jobs of that name that have not ended are reported.
 */
int job_name_find(struct client *client, const char *name, enum job_name_use use, bool must_tell,
    int64_t *ret_id, struct error *err);

/* The caller's newest job, -ENOENT without a sentence if there is none. */
int job_name_find_newest(struct client *client, int64_t *ret_id, struct error *err);

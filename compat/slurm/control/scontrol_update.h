/* SPDX-License-Identifier: MIT */
/* scontrol update, and what it shares with the actions on jobs. */
#pragma once

#include "base/error.h"
#include "cli/api/client.h"
#include "compat/slurm/jobs.h"

/* True if `word` is `name` or an abbreviation of it that has at least `least` letters. */
/* Sets the message for an unknown command or missing arguments, which is printed alone. -EINVAL. */
int scontrol_misuse(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool scontrol_is_word(const char *word, const char *name, size_t least);

/* Adds the jobs named by "12,13_2", "JobId=12" or "JobName=sim". A name means the caller's jobs that have not
 * ended. -ENOENT, with Slurm's message: there is no such job. */
int scontrol_jobs_parse(struct client *client, const char *text, struct slurm_ids *ids, struct error *err);

/* Prints why `what` failed for the job, with the message that clients search for. Returns the exit status. */
int scontrol_complain(struct client *client, const char *what, const char *path, const struct error *err);

/* "update KEY=VALUE..."; the exit status, or a negative errno. */
int scontrol_update(struct client *client, int argc, char **argv, struct error *err);

/* SPDX-License-Identifier: MIT */
/*
 * The texts that were submitted, as files: RUN/scripts/JOB.ATTEMPT.STEP.RANK/NAME. The directories are the
 * agent's and can be passed through, each file belongs to the job's user, who alone can read it. They live as
 * long as the entry of the spool with that name.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/spool.h"

/* Descriptor of RUN/scripts, made when missing; `mode` says who may pass. */
int scripts_open(const char *run_dir, mode_t mode, struct error *err);

/* The directory of one attempt's step, for launch_node.script_dir. The caller frees it. */
char *scripts_directory(const char *run_dir, const struct spool_id *id);

/* Writes the text as the file `name` of that directory for the user. Harmless when repeated. */
int scripts_write(int scripts_fd, const struct spool_id *id, const char *name, const char *text, uid_t uid,
    gid_t gid, struct error *err);

/* Removes what scripts_write() made, when it made something. */
int scripts_remove(int scripts_fd, const struct spool_id *id);

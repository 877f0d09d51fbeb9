/* SPDX-License-Identifier: MIT */
/*
 * Submitted scripts as files: RUN/scripts/JOB.ATTEMPT.STEP.RANK/NAME. Users can pass through the directories
 * but not list them, and only the job's user can read a file. They exist as long as the spool entry with the
 * same name.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/spool.h"

#define SCRIPTS_DIR "scripts" // in RUN

/* Descriptor of RUN/scripts, created if missing; `mode` determines who may pass through. */
int scripts_open(const char *run_dir, mode_t mode, struct error *err);

/* The directory of an attempt's step, for launch_node.script_dir. The caller frees it. */
char *scripts_directory(const char *run_dir, const struct spool_id *id);

/* Writes the text as the file `name` in that directory for the user. Idempotent. */
int scripts_write(int scripts_fd, const struct spool_id *id, const char *name, const char *text, uid_t uid,
    gid_t gid, struct error *err);

/* Removes what scripts_write() created, if anything. */
int scripts_remove(int scripts_fd, const struct spool_id *id);

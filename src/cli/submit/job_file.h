/* SPDX-License-Identifier: MIT */
/*
 * Jobs in a YAML file, one document each:
 *
 *     name: train
 *     command: [python, train.py]
 *     num_gpus: 2
 *     env: { OMP_NUM_THREADS: 8 }
 *     ---
 *     name: test
 *     command: python test.py
 *     needs: { train: ok }
 *
 * Besides `command` and `needs`, a key is the long name of an option of submit, with - or _; the command line
 * takes precedence. Anchors, aliases and << work within a document.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/submit/plan.h"

#define JOB_FILE_MAX (1U << 20) // bytes

/* True for a name with the suffix of such a file, unless it is a script (which begins with "#!"). */
bool job_file_is_one(const char *word);

/* Adds a unit for each document. Errors include file and line. */
int job_file_read(struct call *call, const char *path, struct plan *plan, struct error *err);

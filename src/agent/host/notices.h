/* SPDX-License-Identifier: MIT */
/*
 * Notices to a job: RUN/notices/JOB.ATTEMPT.STEP.RANK, which its user can read (MGPU_NOTICES). A line is
 * the time, a word for the subject, and a sentence:
 *
 *   2026-11-21T06:30:00.000Z gpu_mem it uses 13.5 GiB of GPU memory, and its share is 12 GiB
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/spool_id.h"

#define NOTICES_DIR "notices"   // in RUN
#define NOTICES_MAX (64U << 10) // bytes of one file; further notices are dropped

/* The path; the caller frees it. */
char *notices_path(const char *run_dir, const struct spool_id *id);

/* Creates an empty file; one of an earlier try to launch is replaced. */
int notices_make(
    const char *run_dir, const struct spool_id *id, uid_t uid, gid_t gid, bool is_root, struct error *err);

/* Adds a line to the file at `path`, if there is one. `subject` is one word. -EFBIG: the file is full. */
int notices_add(const char *path, int64_t wall_ms, const char *subject, const char *text);

/* 0 also if there is none. */
int notices_remove(const char *run_dir, const struct spool_id *id);

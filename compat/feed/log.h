/* SPDX-License-Identifier: MIT */
/* gpu_scheduler.log, and the directory of the jobs' logs. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define FEED_LOG_FILE   "gpu_scheduler.log"
#define FEED_LOG_FOLDER "/tmp/gpu_scheduler_logs"

struct feed_log {
    int fd;        // -1: output goes only to the terminal
    bool is_quiet; // only problems are shown on the terminal
};

/* Opens the log in this directory and locks it. -EAGAIN if another `scheduler start` has locked it. If it
 * cannot be written, reports that and uses only the terminal. */
int feed_log_open(struct feed_log *log, bool is_quiet, struct error *err);

/* Writes a line with the time to the log and to standard output. */
void feed_log_say(const struct feed_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a problem only to the log, for a caller that reports it itself. */
void feed_log_keep(const struct feed_log *log, const struct error *err);

/* Writes a problem to the log, and reports it on standard error with its hint. */
void feed_log_problem(const struct feed_log *log, const struct error *err);

/* The current time for a file name: 20261121_142005. */
#define FEED_STAMP_SIZE 32U
void feed_log_stamp(char text[FEED_STAMP_SIZE]);

/* Creates the directory, and verifies that this user owns it and no other can write to it. -EPERM if not. */
int feed_log_folder(const char *path, struct error *err);

void feed_log_close(struct feed_log *log);

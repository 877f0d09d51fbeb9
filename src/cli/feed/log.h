/* SPDX-License-Identifier: MIT */
/* gpu_scheduler.log, and the folder of the jobs' own logs. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define FEED_LOG_FILE   "gpu_scheduler.log"
#define FEED_LOG_FOLDER "/tmp/gpu_scheduler_logs"

struct feed_log {
    int fd;        // -1: only the terminal has it
    bool is_quiet; // the terminal gets problems alone
};

/* Opens the log in this directory and keeps it locked. -EAGAIN when another `scheduler start` has it; when it
 * cannot be written that is said, and all goes to the terminal alone. */
int feed_log_open(struct feed_log *log, bool is_quiet, struct error *err);

/* A line with the time, in the log and on standard output. */
void feed_log_say(const struct feed_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Something went wrong and the rest goes on: on standard error, with its hint. */
void feed_log_problem(const struct feed_log *log, const struct error *err);

/* The time of now in a file's name: 20261121_142005. */
#define FEED_STAMP_SIZE 32U
void feed_log_stamp(char text[FEED_STAMP_SIZE]);

/* Makes the folder, and makes sure that it is ours and that nobody else can write there. -EPERM when it is
 * not. */
int feed_log_folder(const char *path, struct error *err);

void feed_log_close(struct feed_log *log);

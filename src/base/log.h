/* SPDX-License-Identifier: MIT */
/* The log of the daemons: lines on standard error, with level prefixes that journald understands. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_INFO = 6, LOG_DEBUG = 7 }; // syslog(3) numbers

/* Sets the program name shown in every line. Debug lines are dropped unless `verbose`. Under systemd, lines
 * go to journald's own socket, where they have fields. */
void log_open(const char *program, bool verbose);

/* The same with another socket of journald. -errno: lines stay on standard error. */
int log_open_journal(const char *path);

/* True if lines have fields, by which those of one job can be selected. */
bool log_has_fields(void);

/* The node that this process serves: the field MGPU_NODE of all its lines. */
void log_set_node(const char *node);

/* Writes one line. Control bytes are escaped, so text from users is safe as an argument (never as the
 * format). */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "job 12: " and the text; in the journal with the field MGPU_JOB=12. */
void log_job(enum log_level level, uint64_t job, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "node gpu1: " and the text; in the journal with the field MGPU_NODE=gpu1. */
void log_node(enum log_level level, const char *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_DEBUG, __VA_ARGS__)

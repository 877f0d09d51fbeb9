/* SPDX-License-Identifier: MIT */
/* The log of the daemons: lines on standard error, with level prefixes that journald understands. */
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_INFO = 6, LOG_DEBUG = 7 }; // syslog(3) numbers

/* Sets the program name shown in every line. Debug lines are dropped unless `verbose`. */
void log_open(const char *program, bool verbose);

/* Writes one line. Control bytes are escaped, so text from users is safe as an argument (never as the
 * format). */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_DEBUG, __VA_ARGS__)

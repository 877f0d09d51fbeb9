/* SPDX-License-Identifier: MIT */
/* The daemons' log: lines on standard error, with a level that journald understands when it reads them. */
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_INFO = 6, LOG_DEBUG = 7 }; // syslog(3) numbers

/* Names the program in every line. Debug lines are dropped unless `verbose`. */
void log_open(const char *program, bool verbose);

/* One line. Control bytes in it are escaped, so text from users is safe as an argument (never as the format).
 */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_DEBUG, __VA_ARGS__)

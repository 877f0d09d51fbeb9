/* SPDX-License-Identifier: MIT */
/*
 * One write(2) per line, so that lines of several processes do not mix. A line that would have to wait,
 * because the pipe is full, is dropped and counted: daemons never block on their log. Under systemd
 * (JOURNAL_STREAM is set) a line begins with <level>, as in sd-daemon(3); elsewhere with the wall time.
 */
#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utc.h"
#include "base/memory.h"
#include "base/strings.h"

#define LINE_MAX_BYTES 2000

static const char *program_name = "mgpu";
static bool is_verbose, is_journal;

void log_open(const char *program, bool verbose)
{
    program_name = program;
    is_verbose = verbose;
    is_journal = getenv("JOURNAL_STREAM") != NULL;
}

/* A pipe or terminal that takes nothing. A file never is one. */
static bool is_full(void)
{
    struct pollfd log = { .fd = STDERR_FILENO, .events = POLLOUT };
    return poll(&log, 1, 0) == 0;
}

/* What others write between the look and the write is short against the page that a pipe with room has free.
 * The descriptor is shared with other programs, so that O_NONBLOCK is not ours to set. */
static void write_line(const char *prefix, const char *line)
{
    static _Atomic unsigned lost; // threads log too
    if (lost > 0 && !is_full()) {
        _cleanup_free_ char *told =
            xasprintf("%swarning: %u lines were lost because the log was not read\n", prefix, lost);
        (void)!write(STDERR_FILENO, told, strlen(told));
        lost = 0;
    }
    if (lost > 0 || is_full())
        lost++;
    else
        (void)!write(STDERR_FILENO, line, strlen(line));
}

void log_line(enum log_level level, const char *format, ...)
{
    if (level == LOG_DEBUG && !is_verbose)
        return;
    char raw[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    _cleanup_free_ char *text = text_escape(raw, sizeof(raw));
    char prefix[64];
    if (is_journal) {
        (void)snprintf(prefix, sizeof(prefix), "<%d>", (int)level);
    } else {
        char when[40];
        utc_format(clock_wall_ms(), when, sizeof(when));
        (void)snprintf(prefix, sizeof(prefix), "%s %s: ", when, program_name);
    }
    const char *mark = level == LOG_ERROR ? "error: " : level == LOG_WARNING ? "warning: " : "";
    _cleanup_free_ char *line = xasprintf("%s%s%s\n", prefix, mark, text);
    write_line(prefix, line);
}

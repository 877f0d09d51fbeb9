/* SPDX-License-Identifier: MIT */
/* Progress is shown only when the work calls: a single step that takes long shows nothing meanwhile. */
#include "controller/slow_work.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/parse.h"

#define TERMINAL_MS 200
#define LINES_MS    10000
#define EXTEND_S    60 // extension of the start timeout with each line

void slow_work_begin(struct slow_work *work, enum slow_work_reader reader, const char *status_after)
{
    *work = (struct slow_work){ .reader = reader, .status_after = status_after, .since_ms = clock_boot_ms() };
    work->is_terminal = reader == SLOW_WORK_PERSON && isatty(STDERR_FILENO) == 1;
    /* A mail of cron counts as a reader too: it gets a line only about work that takes very long. */
    bool is_patient = reader == SLOW_WORK_PERSON && !work->is_terminal;
    work->next_ms = work->since_ms + (is_patient ? LINES_MS : SLOW_WORK_PATIENT_MS);
}

static void show(struct slow_work *work, const char *line)
{
    if (work->is_terminal) {
        (void)fprintf(stderr, "\r\033[K%s", line);
        (void)fflush(stderr);
        return;
    }
    if (work->reader == SLOW_WORK_PERSON) {
        (void)fprintf(stderr, "%s\n", line);
        return;
    }
    char status[200];
    (void)snprintf(status, sizeof(status), "STATUS=%s\nEXTEND_TIMEOUT_USEC=%d000000", line, EXTEND_S);
    daemon_notify(status);
    log_info("%s", line);
}

void slow_work_step(struct slow_work *work, const char *what, uint64_t done, uint64_t total)
{
    char line[128], took[32], part[16] = "";
    int64_t now_ms = clock_boot_ms();
    if (now_ms < work->next_ms)
        return;
    work->next_ms = now_ms + (work->is_terminal ? TERMINAL_MS : LINES_MS);
    work->is_shown = true;
    (void)snprintf(work->what, sizeof(work->what), "%s", what);
    format_duration(now_ms - work->since_ms, took, sizeof(took));
    if (total > 0)
        (void)snprintf(
            part, sizeof(part), "%.0f%%, ", 100.0 * (double)(done < total ? done : total) / (double)total);
    (void)snprintf(line, sizeof(line), "%s: %s%s", work->what, part, took);
    show(work, line);
}

void slow_work_hide(const struct slow_work *work)
{
    if (work->is_terminal && work->is_shown)
        (void)fputs("\r\033[K", stderr);
}

void slow_work_end(struct slow_work *work)
{
    char took[32], status[100];
    bool is_logged = work->is_shown && work->reader == SLOW_WORK_LOG;
    format_duration(clock_boot_ms() - work->since_ms, took, sizeof(took));
    slow_work_hide(work);
    work->since_ms = 0;
    work->is_shown = false;
    if (is_logged)
        log_info("%s: finished after %s", work->what, took);
    if (!is_logged || work->status_after == NULL)
        return;
    (void)snprintf(status, sizeof(status), "STATUS=%s", work->status_after);
    daemon_notify(status);
}

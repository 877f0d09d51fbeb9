/* SPDX-License-Identifier: MIT */
/*
 *   ⠙ 3 jobs · 2 queued, 1 running · 12s · first end ~14:05 (job 7) · Ctrl-C leaves them as they are
 *
 * A wait shorter than PATIENT_MS shows nothing. Long lists are requested less often.
 */
#include "cli/follow/wait_any_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/parse.h"
#include "cli/show/job_columns.h"

#define PATIENT_MS    300
#define PAINT_MS      1000
#define PAINT_MANY_MS 5000
#define JOBS_MANY     50

bool wait_any_line_init(struct wait_any_line *line, const struct call *call)
{
    *line = (struct wait_any_line){ .call = call, .since_ms = clock_boot_ms() };
    if (call->is_quiet || call->is_json || isatty(STDERR_FILENO) != 1)
        return false;
    screen_open(&line->screen, STDERR_FILENO, call->color);
    line->next_ms = line->since_ms + PATIENT_MS;
    return true;
}

char *wait_any_line_path(const struct strings *jobs)
{
    struct buffer path = { 0 };
    buffer_append_text(&path, API_PATH "/jobs?sparse=1&ids=");
    for (size_t i = 0; i < jobs->count; i++)
        buffer_printf(&path, "%s%s", i == 0 ? "" : ",", jobs->items[i]);
    return buffer_take(&path);
}

int wait_any_line_wait_ms(const struct wait_any_line *line)
{
    int64_t left = line->next_ms - clock_boot_ms();
    return left < 0 ? 0 : (int)left;
}

struct sums {
    size_t n_jobs, n_queued, n_running;
    int64_t first_ms;    // the earliest expected end; 0: unknown
    const json_t *first; // the job with that end
};

static struct sums add_up(const json_t *jobs)
{
    struct sums sums = { .n_jobs = json_array_size(jobs) };
    size_t i;
    const json_t *job;
    json_array_foreach(jobs, i, job)
    {
        int64_t end_ms = time_parse(field_text(job, "expected_end"));
        bool is_queued = field_is(job, "state", "queued");
        sums.n_queued += is_queued;
        sums.n_running += !is_queued && !job_is_done(job);
        if (end_ms == 0 || (sums.first_ms != 0 && end_ms >= sums.first_ms))
            continue;
        sums.first_ms = end_ms;
        sums.first = job;
    }
    return sums;
}

void wait_any_line_paint(struct wait_any_line *line, const json_t *list)
{
    struct sums sums = add_up(json_object_get(list, "jobs"));
    const char *dot = screen_dot(&line->screen);
    _cleanup_buffer_ struct buffer text = { 0 };
    char waited[32], end[40];
    format_duration(clock_boot_ms() - line->since_ms, waited, sizeof(waited));
    buffer_printf(&text, "%s %zu job%s %s %zu queued, %zu running %s %s",
        screen_spinner(&line->screen, line->turns), sums.n_jobs, sums.n_jobs == 1 ? "" : "s", dot,
        sums.n_queued, sums.n_running, dot, waited);
    if (sums.first_ms != 0) {
        _cleanup_free_ char *id = job_id(sums.first);
        time_format_short(sums.first_ms, clock_wall_ms(), line->call->times, end, sizeof(end));
        buffer_printf(&text, " %s first end ~%s (job %s)", dot, end, id);
    }
    buffer_printf(&text, " %s Ctrl-C leaves them as they are", dot);
    int length = (int)screen_text_fit(buffer_text(&text), line->screen.width - 1);
    (void)fprintf(stderr, "\r\033[K%.*s", length, buffer_text(&text));
    line->turns++;
    line->next_ms = clock_boot_ms() + (sums.n_jobs > JOBS_MANY ? PAINT_MANY_MS : PAINT_MS);
}

void wait_any_line_clear(struct wait_any_line *line)
{
    if (line->turns > 0)
        (void)fputs("\r\033[K", stderr);
    line->turns = 0;
}

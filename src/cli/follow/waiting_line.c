/* SPDX-License-Identifier: MIT */
/*
 * A start that takes less than PATIENT_MS is not announced as a wait. On a terminal there is one line,
 * updated each second; elsewhere each change is one line, so that CI logs stay short.
 */
#include "cli/follow/waiting_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/follow/session.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"

#define PATIENT_MS 300
#define PAINT_MS   1000
#define NEWS_TURNS 3 // repaints between two requests to the server

void waiting_line_init(struct waiting_line *line, const struct call *call, bool is_detaching)
{
    *line = (struct waiting_line){ .call = call, .since_ms = clock_boot_ms(), .is_detaching = is_detaching };
    if (call->is_quiet)
        return;
    /* The locale and the terminal are only examined on a terminal. */
    if (isatty(STDERR_FILENO) == 1)
        screen_open(&line->screen, STDERR_FILENO, call->color);
    line->next_ms = line->since_ms + PATIENT_MS;
}

int waiting_line_wait_ms(const struct waiting_line *line)
{
    if (line->next_ms == 0)
        return -1;
    int64_t left = line->next_ms - clock_boot_ms();
    return left < 0 ? 0 : (int)left;
}

bool waiting_line_wants_news(const struct waiting_line *line)
{
    return line->turns % NEWS_TURNS == 0;
}

/* " · ~14:05 (<= 15:40)", as far as known. */
static void format_forecast(const struct waiting_line *line, const json_t *job, char *text, size_t size)
{
    char eta[40], latest[40];
    int64_t now_ms = clock_wall_ms(), eta_ms = time_parse(field_text(job, "eta"));
    int64_t latest_ms = time_parse(field_text(job, "eta_latest"));
    if (eta_ms == 0)
        return;
    time_format_short(eta_ms, now_ms, line->call->times, eta, sizeof(eta));
    time_format_short(latest_ms, now_ms, line->call->times, latest, sizeof(latest));
    if (latest_ms > 0)
        (void)snprintf(text, size, " %s ~%s (%s %s)", screen_dot(&line->screen), eta,
            line->screen.is_utf8 ? "≤" : "<=", latest);
    else
        (void)snprintf(text, size, " %s ~%s", screen_dot(&line->screen), eta);
}

static void paint_terminal(struct waiting_line *line, const json_t *job)
{
    char waited[32], place[32] = "", starts[96] = "";
    int64_t position = field_integer(job, "position", 0);
    const char *why = field_is_known(job, "reason_text") ? "reason_text" : "reason";
    _cleanup_free_ char *reason = field_is_known(job, why) ? field_shown(job, why) : NULL;
    const char *dot = screen_dot(&line->screen);
    _cleanup_free_ char *why_text = reason == NULL ? NULL : xasprintf(" %s", reason);
    format_forecast(line, job, starts, sizeof(starts));
    format_duration(clock_boot_ms() - line->since_ms, waited, sizeof(waited));
    if (position > 0)
        (void)snprintf(place, sizeof(place), " %s #%" PRId64, dot, position);
    /* The keys come before the reason, of which a narrow terminal shows only the beginning. */
    const char *keys = line->is_detaching         ? "Ctrl-C leaves it queued"
                       : session_is_on_terminal() ? "d detach, w why, Ctrl-C cancel"
                                                  : "Ctrl-C cancels it";
    _cleanup_free_ char *text =
        xasprintf("%s job %" PRId64 " %s%s %s %s%s %s %s%s%s%s", screen_spinner(&line->screen, line->turns),
            field_integer(job, "id", 0), job_is_held(job) ? "held" : "queued", place, dot, waited, starts,
            dot, keys, reason == NULL ? "" : " ", reason == NULL ? "" : dot, reason == NULL ? "" : why_text);
    (void)fprintf(stderr, "\r\033[K%.*s", (int)screen_text_fit(text, line->screen.width - 1), text);
    line->is_painted = true;
    line->next_ms = clock_boot_ms() + PAINT_MS;
}

void waiting_line_paint(struct waiting_line *line, const json_t *job)
{
    int64_t id = field_integer(job, "id", 0), position = field_integer(job, "position", 0);
    if (line->next_ms == 0 || clock_boot_ms() < line->next_ms)
        return;
    if (line->screen.is_tty) {
        paint_terminal(line, job);
    } else {
        if (position > 0)
            talk_line("job %" PRId64 " queued (position %" PRId64 ")", id, position);
        else
            talk_line("job %" PRId64 " queued", id);
        line->next_ms = 0;
    }
    line->turns++;
}

void waiting_line_clear(struct waiting_line *line)
{
    if (line->is_painted)
        (void)fputs("\r\033[K", stderr);
    line->is_painted = false;
}

void waiting_line_started(struct waiting_line *line, const json_t *job)
{
    line->next_ms = 0;
    waiting_line_clear(line);
    if (line->call->is_quiet)
        return;
    _cleanup_free_ char *where = job_where(job);
    int64_t id = field_integer(job, "id", 0);
    if (!line->screen.is_tty) {
        talk_line("job %" PRId64 " started on %s", id, where);
        return;
    }
    /* On a terminal, nothing is printed about an immediate start. */
    if (line->turns == 0)
        return;
    char waited[32];
    format_duration(clock_boot_ms() - line->since_ms, waited, sizeof(waited));
    (void)fprintf(
        stderr, "%s job %" PRId64 " on %s after %s\n", line->screen.is_utf8 ? "▶" : ">", id, where, waited);
}

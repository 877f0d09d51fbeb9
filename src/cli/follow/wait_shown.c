/* SPDX-License-Identifier: MIT */
#include "cli/follow/wait_shown.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "cli/follow/waiting_line.h"
#include "cli/show/job_end.h"

#define STARTING_MS 200

static int line_wait_ms(const void *line)
{
    return waiting_line_wait_ms(line);
}

static void show_state(void *arg, const json_t *job)
{
    struct waiting_line *line = arg;
    if (field_is(job, "state", "queued"))
        waiting_line_paint(line, job);
    else if (field_is(job, "state", "starting"))
        line->next_ms = clock_boot_ms() + STARTING_MS;
    else if (field_is(job, "state", "running"))
        waiting_line_started(line, job);
    else
        line->next_ms = 0;
}

int wait_shown(struct call *call, const char *id, const char *states, int64_t deadline_ms, json_t **ret,
    struct error *err)
{
    struct waiting_line line;
    const struct job_end_news news = { line_wait_ms, show_state, &line };
    bool is_shown = isatty(STDERR_FILENO) == 1 && !call->is_quiet && !call->is_json;
    if (is_shown)
        waiting_line_init(&line, call, true);
    int r = job_end_await_printing(call, id, states, deadline_ms, is_shown ? &news : NULL, ret, err);
    if (is_shown)
        waiting_line_clear(&line);
    return r;
}

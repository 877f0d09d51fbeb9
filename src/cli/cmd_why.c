/* SPDX-License-Identifier: MIT */
/* mgpu why: everything that keeps a job from starting, until when, and what would start it now. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/jobs_each.h"
#include "cli/why_text.h"

struct answering {
    struct view view;
    bool is_next; // something was shown before
};

static int explain(struct call *call, const char *id, void *arg, struct error *err)
{
    struct answering *answering = arg;
    _cleanup_json_ json_t *why = NULL, *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/why", id);
    _cleanup_free_ char *job_path = xasprintf(API_PATH "/jobs/%s", id);
    int r = client_get(&call->client, path, &why, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        (void)json_dumpf(why, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        (void)fputc('\n', stdout);
        return 0;
    }
    r = client_get(&call->client, job_path, &job, err);
    if (r < 0)
        return r;
    if (answering->is_next)
        (void)fputc('\n', stdout);
    answering->is_next = true;
    why_print(&answering->view, job, why, stdout);
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct screen screen;
    _cleanup_strings_ struct strings jobs = { 0 };
    int r = selector_resolve(&call->client, argc, argv, &jobs, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    struct answering answering = {
        .view = { .screen = &screen, .times = call->times, .now_ms = clock_wall_ms() },
    };
    return jobs_each(call, &jobs, explain, &answering);
}

const struct command command_why = {
    .name = "why",
    .usage = "JOB...",
    .help = "Say why jobs wait, until when, and what would start them now",
    .detail = "Every blocker is listed, not only the first. A time is a forecast, with what it is based on.",
    .takes_jobs = true,
    .job_states = "queued,held",
    .run = run,
};

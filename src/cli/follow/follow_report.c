/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/follow/follow.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/show/usage_text.h"
#include "cli/show/why_text.h"
#include "cli/term/screen.h"

void follow_report(const struct call *call, const char *verb, const json_t *job)
{
    char ran[32] = "";
    _cleanup_free_ char *outcome = job_outcome(job);
    int64_t id = field_integer(job, "id", 0);
    bool is_exit = field_is(job, "ended_by", "exit");
    if (outcome == NULL || (is_exit && call->is_quiet))
        return;
    if (is_exit && isatty(STDERR_FILENO) != 1) {
        /* For example that processes were left running, which is reported nowhere else. */
        _cleanup_free_ char *message = field_is_known(job, "message") ? field_shown(job, "message") : NULL;
        if (message != NULL)
            talk_line("job %" PRId64 ": %s", id, message);
        return;
    }
    if (!is_exit) {
        struct error err = { 0 };
        (void)error_set(&err, -EIO, "job %" PRId64 ": %s", id, outcome);
        (void)error_hint(&err, "mgpu show %" PRId64, id);
        talk_error(verb, &err);
        return;
    }
    struct screen screen;
    screen_open(&screen, STDERR_FILENO, call->color);
    if (field_is_known(job, "run_seconds")) // arrays have none
        format_duration((int64_t)(field_number(job, "run_seconds", 0) * 1000), ran, sizeof(ran));
    bool is_success = field_integer(job, "exit_code", 1) == 0;
    _cleanup_free_ char *usage = usage_sentence(json_object_get(job, "usage"));
    _cleanup_free_ char *dot = xasprintf(" %s ", screen_dot(&screen));
    (void)fprintf(stderr, "%s%s job %" PRId64 " %s%s%s %s %s%s%s%s%s\n",
        screen_color(&screen, job_color(job)), job_glyph(&screen, job), id, is_success ? "done" : "failed",
        ran[0] != '\0' ? " in " : "", ran, screen_dot(&screen), outcome, usage == NULL ? "" : dot,
        usage == NULL ? "" : "GPUs ", usage == NULL ? "" : usage, screen_color(&screen, COLOR_NONE));
}

void follow_show_why(struct call *call, const json_t *job, const struct screen *screen)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *why = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/why", field_integer(job, "id", 0));
    if (client_get(&call->client, path, &why, &err) < 0) {
        talk_error("run", &err);
        return;
    }
    struct view view = { .screen = screen, .times = call->times, .now_ms = clock_wall_ms() };
    why_print(&view, job, why, stderr);
}

/* The cause of a requeue (job/state.c) as the end of a sentence. */
static const char *cause_text(const json_t *event)
{
    static const struct {
        const char *cause, *text;
    } rows[] = {
        { "preempted", ", because other jobs need its GPUs" },
        { "asked", " on request" },
        { "time_limit", " at its time limit" },
        { "failed", ", because it failed" },
        { "node_lost", ", because its node was lost" },
        { "gpu_oom", ", because its GPU memory was used up" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (field_is(event, "cause", rows[i].cause))
            return rows[i].text;
    return NULL;
}

int64_t follow_requeues(const json_t *job)
{
    return field_integer(job, "preemptions", 0) + field_integer(job, "restarts", 0);
}

bool follow_is_without_output(const json_t *job, int64_t attempt)
{
    const json_t *earlier = json_object_get(job, "earlier");
    return earlier != NULL && field_integer(earlier, "attempt", 0) != attempt;
}

void follow_say_requeued(struct call *call, uint64_t id)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRIu64, id);
    const char *cause = NULL;
    (void)client_get(&call->client, path, &job, NULL); // without an answer the cause is omitted
    const json_t *events = json_object_get(job, "events");
    for (size_t i = json_array_size(events); i > 0 && cause == NULL; i--)
        cause = cause_text(json_array_get(events, i - 1));
    talk_line("job %" PRIu64 " was requeued%s; waiting for its next attempt", id, cause != NULL ? cause : "");
}

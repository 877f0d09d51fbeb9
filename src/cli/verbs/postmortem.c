/* SPDX-License-Identifier: MIT */
/* mgpu postmortem: the history of a job in words, on one page. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/show_json.h"
#include "cli/show/job_columns.h"
#include "cli/show/jobs_each.h"
#include "cli/show/ps_arrays.h"
#include "cli/show/usage_text.h"
#include "cli/verbs/verbs.h"

#define LINE_MAX_SHOWN 4096

static void print_tail(const struct jobs_pages *pages, const json_t *usage)
{
    const char *tail = field_text(usage, "tail");
    if (tail == NULL || tail[0] == '\0')
        return;
    (void)fputs("\nlast lines of its output\n", stdout);
    while (*tail != '\0') {
        size_t length = strcspn(tail, "\n");
        _cleanup_free_ char *line = xstrndup(tail, length);
        _cleanup_free_ char *shown = text_escape(line, LINE_MAX_SHOWN);
        (void)printf("  %s\n", shown);
        tail += length + (tail[length] == '\n');
    }
}

static void print_resources(const struct jobs_pages *pages, const json_t *job, const json_t *usage)
{
    char text[32];
    _cleanup_free_ char *sentence = usage_sentence(usage), *stray = usage_stray(usage);
    double peak = 0;
    bool has_peak =
        field_measured(usage, "memory_peak_bytes", &peak) || field_measured(job, "max_rss_bytes", &peak);
    if (sentence != NULL)
        (void)printf("Its GPUs were %s.\n", sentence);
    if (field_number(usage, "idle_gpu_seconds", 0) >= 1) {
        format_duration((int64_t)(field_number(usage, "idle_gpu_seconds", 0) * 1000), text, sizeof(text));
        (void)printf("GPU time allocated but not used: %s.\n", text);
    }
    if (has_peak) {
        format_size((uint64_t)peak, text, sizeof(text));
        (void)printf("Peak host memory: %s", text);
        if (field_integer(job, "memory", 0) > 0) {
            format_size((uint64_t)field_integer(job, "memory", 0), text, sizeof(text));
            (void)printf(" of %s allowed", text);
        }
        (void)fputs(".\n", stdout);
    }
    if (stray != NULL)
        (void)printf("Warning: it %s.\n", stray);
}

/* mgpud before 0.2 has none. */
static void print_sentence(const json_t *job, const char *name)
{
    _cleanup_free_ char *text = field_shown(job, name);
    if (field_is_known(job, name))
        (void)printf("%s\n", text);
}

/* "4 elements ended: 3 done, 1 failed."; an array has no start of its own. */
static bool print_elements(const json_t *job)
{
    _cleanup_free_ char *text = elements_text(job);
    if (text == NULL)
        return false;
    (void)printf("%s.\n", text);
    return true;
}

static void print_story(const struct jobs_pages *pages, const json_t *job)
{
    char waited[32], ran[32], when[64];
    const json_t *usage = json_object_get(job, "usage");
    _cleanup_free_ char *id = job_id(job), *name = field_shown(job, "name"), *user = field_shown(job, "user");
    _cleanup_free_ char *where = job_where(job), *outcome = job_outcome(job);
    const struct screen *screen = pages->view.screen;
    format_duration((int64_t)(field_number(job, "wait_seconds", 0) * 1000), waited, sizeof(waited));
    format_duration((int64_t)(field_number(job, "run_seconds", 0) * 1000), ran, sizeof(ran));
    (void)printf("%sjob %s%s  %s, of %s\n", screen_color(screen, COLOR_BOLD), id,
        screen_color(screen, COLOR_NONE), name, user);
    if (field_is_known(job, "started_at"))
        (void)printf("It waited %s, then ran for %s on %s.\n", waited, ran, where);
    else if (!print_elements(job))
        (void)printf("It waited %s and never ran.\n", waited);
    time_format(
        time_parse(field_text(job, "ended_at")), pages->view.now_ms, pages->view.times, when, sizeof(when));
    (void)printf("It ended at %s: %s%s%s.\n", when, screen_color(screen, job_color(job)),
        outcome == NULL ? "done" : outcome, screen_color(screen, COLOR_NONE));
    if (field_is_known(usage, "fault")) {
        _cleanup_free_ char *fault = field_shown(usage, "fault");
        (void)printf("The driver reported: %s.\n", fault);
    }
    print_resources(pages, job, usage);
    print_sentence(job, "cause");
    print_sentence(job, "advice");
    if (json_array_size(json_object_get(usage, "timeline")) > 0) {
        (void)fputs("\nits GPUs, from start to end\n", stdout);
        usage_print_timeline(screen, usage, stdout);
    }
    print_tail(pages, usage);
    if (field_is_known(job, "log")) {
        _cleanup_free_ char *log = field_shown(job, "log");
        (void)printf("\nall of its output: mgpu logs %s (%s)\n", id, log);
    }
}

/* The job as described by mgpud, and the outcome in words. */
static void print_json(json_t *job)
{
    _cleanup_free_ char *outcome = job_outcome(job);
    (void)json_object_set_new(job, "outcome", outcome != NULL ? json_string(outcome) : json_null());
    show_json_page(job, stdout);
}

static int explain(struct call *call, const char *id, void *arg, struct error *err)
{
    struct jobs_pages *pages = arg;
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", id);
    int r = client_get(&call->client, path, &job, err);
    if (r < 0)
        return r;
    if (!job_is_done(job)) {
        (void)error_set(err, -EALREADY, "job %s has not ended", id);
        return error_hint(err, "mgpu show %s", id);
    }
    if (call->is_json) {
        print_json(job);
        return 0;
    }
    jobs_begin_page(pages);
    print_story(pages, job);
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    return jobs_show_each(call, argc, argv, explain, err);
}

const struct command command_postmortem = {
    .name = "postmortem",
    .usage = "JOB...",
    .help = "Summarize ended jobs: how they ended, what they used, their last lines",
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .job_states = "done,failed,cancelled",
    .run = run,
};

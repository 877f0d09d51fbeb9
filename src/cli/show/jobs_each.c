/* SPDX-License-Identifier: MIT */
/* A failure for one job does not keep the others from being handled. */
#include "cli/show/jobs_each.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"

int jobs_each(struct call *call, const struct strings *jobs, jobs_each_fn each, void *arg)
{
    size_t failures = 0;
    int status = EXIT_OK;
    for (size_t i = 0; i < jobs->count; i++) {
        struct error err = { 0 };
        int r = each(call, jobs->items[i], arg, &err);
        if (r >= 0)
            continue;
        int here = exit_code_of_error(r);
        status = failures == 0 || status == here ? here : EXIT_PARTLY;
        failures++;
        talk_error(call->command->name, &err);
        if (status == EXIT_UNREACHABLE)
            return status;
    }
    return failures > 0 && failures < jobs->count ? EXIT_PARTLY : status;
}

/* --- many at a time --- */

/* Sequential requests each wait for their own commit; parallel ones are committed together by mgpud. */
#define SIDES     8
#define SIDES_MIN 64 // jobs

/* Handles every SIDES-th job, beginning with the first one of this side, so that all are handled in roughly
 * their order. */
static int handle_side(
    struct call *call, const struct strings *jobs, size_t side, jobs_each_fn each, void *arg)
{
    _cleanup_strings_ struct strings own = { 0 };
    for (size_t i = side; i < jobs->count; i += SIDES)
        strings_add(&own, jobs->items[i]);
    return jobs_each(call, &own, each, arg);
}

static int wait_for_side(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_UNREACHABLE;
}

int jobs_each_beside(struct call *call, const struct strings *jobs, jobs_each_fn each, void *arg)
{
    pid_t pids[SIDES];
    size_t count = 0;
    int status = EXIT_OK;
    if (jobs->count < SIDES_MIN || call->is_json)
        return jobs_each(call, jobs, each, arg);
    (void)fflush(NULL);
    while (count < SIDES && (pids[count] = fork()) > 0)
        count++;
    if (count < SIDES && pids[count] == 0) {
        call->client.http = NULL; // the parent's connection, which the parent closes
        int own = handle_side(call, jobs, count, each, arg);
        (void)fflush(NULL);
        _exit(own);
    }
    for (size_t i = 0; i < SIDES; i++) {
        int one = i < count ? wait_for_side(pids[i]) : handle_side(call, jobs, i, each, arg);
        status = i == 0 || status == one ? one : EXIT_PARTLY;
    }
    return status;
}

/* --- a page for each --- */

int jobs_show_each(struct call *call, int argc, char **argv, jobs_each_fn each, struct error *err)
{
    struct screen screen;
    _cleanup_strings_ struct strings jobs = { 0 };
    int r = selector_resolve(call, argc, argv, &jobs, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    struct jobs_pages pages = {
        .view = { .screen = &screen, .times = call->times, .now_ms = clock_wall_ms() },
    };
    return jobs_each(call, &jobs, each, &pages);
}

void jobs_begin_page(struct jobs_pages *pages)
{
    if (pages->is_next)
        (void)fputc('\n', stdout);
    pages->is_next = true;
}

/* --- the same request for each --- */

struct deed {
    const char *action, *done;
    json_t *body;
};

static int post(struct call *call, const char *id, void *arg, struct error *err)
{
    const struct deed *deed = arg;
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/%s", id, deed->action);
    int r = client_call(&call->client, "POST", path, deed->body, &job, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_line(job, stdout);
    } else if (!call->is_quiet && isatty(STDERR_FILENO) == 1 && deed->done != NULL) {
        (void)fprintf(stderr, "  job %s %s\n", id, deed->done);
    } else if (!call->is_quiet && isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "  job %s is %s\n", id, job_state_shown(job));
    }
    return 0;
}

int jobs_post_each(struct call *call, int argc, char **argv, const char *action, json_t *body,
    const char *done, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    struct deed deed = { .action = action, .done = done, .body = body };
    int r = selector_resolve(call, argc, argv, &jobs, err);
    return r < 0 ? r : jobs_each_beside(call, &jobs, post, &deed);
}

/* SPDX-License-Identifier: MIT */
/* The core has the jobs that have not ended and the latest ended ones; older ones are read from the store. */
#include "controller/api/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/refer.h"
#include "controller/core/entry.h"
#include "controller/core/forecasts.h"
#include "controller/core/park.h"
#include "controller/core/tables.h"
#include "job/behind.h"
#include "wire/json_job.h"
#include "wire/json_ranks.h"

#define REASON_SIZE 256

struct search {
    struct request *request;
    jobs_found_fn on_found;
};

/* The data printed for a job, and what it borrows. */
struct shown_job {
    struct json_job_view view;
    char reason[REASON_SIZE];
    char *early, *park_bar, *after;
    struct json_rank *ranks;
};

static void reply_none(struct request *request, uint64_t id)
{
    struct error err = { 0 };
    if (request->serve->controller->standby != NULL) {
        _cleanup_free_ char *what = xasprintf("this standby does not know job %" PRIu64, id);
        refer_to_leader(request, what); // the job may be new
        return;
    }
    (void)error_set(&err, -ENOENT, "there is no job %" PRIu64, id);
    (void)error_hint(&err, "all jobs: mgpu ps -a");
    request_reply_problem(request, &err);
}

static void on_row(void *arg, uint64_t id, struct job *row)
{
    struct search *search = arg;
    struct request *request = search->request;
    if (!request_is_over(request)) {
        if (row != NULL)
            search->on_found(request, row);
        else
            reply_none(request, id);
    }
    job_free(row);
    request_unref(request);
    free(search);
}

void jobs_find(struct request *request, uint64_t id, jobs_found_fn on_found)
{
    const struct controller *controller = request->serve->controller;
    const struct job *job = core_job(controller->core, id);
    if (job != NULL) {
        on_found(request, job);
        return;
    }
    struct search *search = xcalloc(1, sizeof(*search));
    *search = (struct search){ .request = request, .on_found = on_found };
    request_ref(request);
    store_fetch_job(controller->store, id, on_row, search);
}

const struct job_usage *jobs_usage(const struct serve *serve, const struct job *job)
{
    const struct core_entry *entry = core_find(serve->controller->core, job->id);
    return entry != NULL ? core_usage(entry) : job_run(job)->usage;
}

/* "waiting for its checkpoint, at most 20s more" */
static const char *describe_stop(const struct json_job_view *view, int64_t until_ms, char text[REASON_SIZE])
{
    char left[32];
    int64_t left_ms = until_ms - view->now_ms;
    if (view->job->state != JOB_STOPPING || until_ms == 0)
        return NULL;
    format_duration(left_ms > 0 ? left_ms : 0, left, sizeof(left));
    (void)snprintf(text, REASON_SIZE, "waiting for its checkpoint, at most another %s", left);
    return text;
}

/* The node may be reachable again by the time the job is shown. */
static int64_t unreachable_ms(const struct core *core, const struct job *job, size_t rank)
{
    bool is_active = job_state_is_active(job->state);
    const struct core_node *node = is_active ? core_node_named(core, job_node_name(job, rank)) : NULL;
    return node != NULL && node->is_unreachable ? node->last_contact_wall_ms : 0;
}

const char *jobs_owner(const struct serve *serve, const struct job *job)
{
    const char *name = core_owner_name(serve->controller->core, job);
    return name != NULL ? name : usernames_name(serve->names, job->uid);
}

static int64_t known_or_0(int64_t ms)
{
    return ms == TIME_NEVER ? 0 : ms;
}

/* Why the job waits, when it is expected to start and end, whether it starts early, for which job it is
 * parked or which is parked for it, and why it may not be parked. */
static void add_forecast(
    struct core *core, const struct core_entry *entry, int64_t wall_ms, struct shown_job *ret)
{
    struct json_job_view *view = &ret->view;
    const struct job *job = view->job;
    int64_t eta_ms = TIME_NEVER, latest_ms = TIME_NEVER;
    if (job_shown_state(job) == JOB_QUEUED || job_park(job)->phase == PARK_WAITING) {
        view->reason = core_wait_reason(core, wall_ms, entry, ret->reason, sizeof(ret->reason));
        view->reason_text = ret->reason;
        core_eta(core, wall_ms, job->id, &eta_ms, &latest_ms);
        if (job_waits_behind(job))
            eta_ms = core_expected_end(core, wall_ms, job_park(job)->behind, TIME_NEVER);
        core_eta_interval(
            core, wall_ms, eta_ms, latest_ms, job->ask->begin_ms, &view->eta_from_ms, &view->eta_until_ms);
    }
    view->eta_ms = known_or_0(eta_ms);
    view->eta_latest_ms = known_or_0(latest_ms);
    view->expected_end_ms = known_or_0(core_expected_end(core, wall_ms, job->id, eta_ms));
    view->early_start = ret->early = core_describe_early(core, entry);
    view->latest_return_ms = known_or_0(core_latest_return(core, job->id));
    view->park_host = core_park_host(core, job->id);
    view->lender = sched_lender(core_sched(core), job->id, &view->due_ms);
    view->borrower = sched_borrower(core_sched(core), job->id);
    view->park_bar = ret->park_bar = core_why_not_parked(core, entry);
}

/* The dependencies with "41.3" in place of the number of such an element, if it is in memory; NULL: there is
 * none. */
static char *name_elements(const struct core *core, const char *after)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    bool is_any = false;
    for (const char *rest = after; rest != NULL && *rest != '\0';) {
        char *end = NULL;
        const struct job *job = core_job(core, strtoull(rest, &end, 10));
        size_t length = (size_t)(end - rest) + strcspn(end, ",?");
        length += rest[length] != '\0';
        bool is_element = job != NULL && job->array_job != 0;
        is_any |= is_element;
        if (is_element)
            buffer_printf(&out, "%" PRIu64 ".%" PRIu32 "%.*s", job->array_job, job->array_index,
                (int)(length - (size_t)(end - rest)), end);
        else
            buffer_append(&out, rest, length);
        rest += length;
    }
    return is_any ? buffer_take(&out) : NULL;
}

/* The core's data about the job that is not in its record. */
static void fill_view(
    struct core *core, const struct core_entry *entry, int64_t wall_ms, unsigned shown, struct shown_job *ret)
{
    struct json_job_view *view = &ret->view;
    const struct job *job = view->job;
    view->after_shown = ret->after = name_elements(core, job->ask->after);
    view->usage = core_usage(entry);
    view->idle_ms = core_idle_ms(entry);
    view->idle_end_ms = job->state == JOB_RUNNING ? core_idle_end_ms(core, job) : 0;
    view->unreachable_ms = unreachable_ms(core, job, 0);
    view->reason_text = describe_stop(view, core_checkpoint_until(entry), ret->reason);
    if (view->reason_text == NULL)
        view->reason_text = core_delay(core, wall_ms, entry, ret->reason, sizeof(ret->reason));
    if ((shown & SHOW_POSITION) != 0 && job->state == JOB_QUEUED)
        view->position = core_queue_position(core, job->id);
    if ((shown & SHOW_WHY) != 0 && job->state != JOB_DONE)
        add_forecast(core, entry, wall_ms, ret);
    ret->ranks = core_ranks_list(entry);
    for (size_t rank = 0; ret->ranks != NULL && rank < job_node_count(job); rank++)
        ret->ranks[rank].unreachable_ms = unreachable_ms(core, job, rank);
    view->ranks = ret->ranks;
}

/* As text into `out`; if `out` is NULL, as a tree. */
static json_t *write_job(struct serve *serve, const struct job *job, unsigned shown, struct buffer *out)
{
    struct core *core = serve->controller->core;
    int64_t wall_ms = clock_wall_ms();
    const struct core_entry *entry = (shown & SHOW_ACCEPTED) == 0 ? core_find(core, job->id) : NULL;
    if (serve->controller->standby != NULL)
        shown &= ~(unsigned)(SHOW_WHY | SHOW_POSITION); // the scheduler runs on the leader
    struct shown_job of = { .view = {
                                .job = job,
                                .names = serve->names,
                                .owner = core_owner_name(core, job),
                                .now_ms = core_now_ms(core, wall_ms),
                                .is_sparse = (shown & SHOW_SPARSE) != 0,
                                .usage = job_run(job)->usage,
                            } };
    if (entry != NULL)
        fill_view(core, entry, wall_ms, shown, &of);
    json_t *object = NULL;
    if (out != NULL)
        json_job_append(&of.view, out);
    else
        object = json_job_write(&of.view);
    free(of.ranks);
    free(of.park_bar);
    free(of.early);
    free(of.after);
    return object;
}

json_t *jobs_write(struct serve *serve, const struct job *job, unsigned shown)
{
    return write_job(serve, job, shown, NULL);
}

void jobs_append(struct serve *serve, const struct job *job, unsigned shown, struct buffer *out)
{
    (void)write_job(serve, job, shown, out);
}

void jobs_reply(struct request *request, unsigned status, const struct job *job)
{
    request_hold_json(request, status, jobs_write(request->serve, job, SHOW_QUEUE));
}

static void reply_job(struct request *request, const struct job *job)
{
    jobs_reply(request, 200, job);
}

void jobs_on_changed(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, request->job, reply_job);
}

bool jobs_check(struct request *request, enum action action, const struct job *job, const char *what)
{
    if (core_may(&request->who, action, job))
        return true;
    struct error err = { 0 };
    if (core_token_lacks(&request->who, action, job, &err)) {
        request_reply_problem(request, &err);
        return false;
    }
    (void)error_set(&err, -EPERM, "job %" PRIu64 " belongs to %s: you are not allowed to %s", job->id,
        jobs_owner(request->serve, job), what);
    (void)error_hint(&err, "only its owner can, or %s",
        role_permits(ROLE_OPERATOR, action, false) ? "operators" : "administrators");
    request_reply_problem(request, &err);
    return false;
}

static const struct {
    const char *word;
    enum job_state state;
    uint32_t over;
} words[] = {
    { "queued", JOB_QUEUED, 0 },
    { "starting", JOB_STARTING, 0 },
    { "running", JOB_RUNNING, 0 },
    { "stopping", JOB_STOPPING, 0 },
    { "done", JOB_DONE, 1U << OVER_DONE },
    { "failed", JOB_DONE, 1U << OVER_FAILED },
    { "cancelled", JOB_DONE, 1U << OVER_CANCELLED },
};

#define WORDS (sizeof(words) / sizeof(words[0]))

static int unknown_state(const char *text, size_t length, struct error *err)
{
    const char *known[WORDS + 1] = { NULL };
    for (size_t i = 0; i < WORDS; i++)
        known[i] = words[i].word;
    _cleanup_free_ char *word = xstrndup(text, length);
    _cleanup_free_ char *shown = text_escape(word, 40);
    const char *nearest = text_nearest(word, known);
    (void)error_set(err, -EINVAL, "unknown state '%s'", shown);
    if (nearest != NULL)
        return error_hint(err, "did you mean '%s'?", nearest);
    return error_hint(err, "queued, starting, running, stopping, done, failed or cancelled");
}

int jobs_parse_states(const char *text, uint32_t *ret_states, uint32_t *ret_over, struct error *err)
{
    uint32_t states = 0, over = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < WORDS && (strlen(words[i].word) != length || strncmp(words[i].word, at, length) != 0))
            i++;
        if (i == WORDS)
            return unknown_state(at, length, err);
        states |= 1U << words[i].state;
        over |= words[i].over;
        at += length;
        if (*at == '\0')
            break;
    }
    *ret_states = states;
    *ret_over = over;
    return 0;
}

int jobs_parse_user(struct request *request, const char *text, uint32_t *ret_uid, struct error *err)
{
    int r = usernames_uid(request->serve->names, text, ret_uid, err);
    return r == -ENOENT ? error_set(err, -EINVAL, "user: there is no user '%.60s'", text) : r;
}

uint32_t jobs_over_bit(const struct job *job)
{
    if (job->end == END_CANCELLED)
        return 1U << OVER_CANCELLED;
    bool is_good = job->end == END_RELEASED || (job->end == END_EXIT && job->exit_code == 0);
    return is_good ? 1U << OVER_DONE : 1U << OVER_FAILED;
}

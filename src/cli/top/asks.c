/* SPDX-License-Identifier: MIT */
/*
 * The list of jobs is requested once. After that, /events reports which jobs have changed, and only these are
 * requested again, together, at most once a second. Values that change without an event, such as positions in
 * the queue and forecasts, are requested after any event, and only for the jobs on the screen.
 */
#include "cli/top/asks.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"

#define OPEN_MAX      10000 // jobs that have not ended
#define CHANGED_MAX   200   // jobs in one request
#define ASK_AGAIN_MS  1000  // minimum time between two identical requests, whatever happens
#define CALM_MS       10000 // for values that change slowly
#define DETAIL_POINTS 120

#define TEXT(value)   #value
#define NUMBER(value) TEXT(value)

static void keep(json_t **place, json_t *answer, const char *member)
{
    json_t *value = member == NULL ? answer : json_object_get(answer, member);
    json_decref(*place);
    *place = json_incref(value);
}

/* --- jobs --- */

/* With a long queue, the list of waiting jobs takes mgpud some time, because each start is forecast. Running
 * jobs take less, and so do waiting jobs without forecasts. Each list is therefore drawn first before the
 * next request is answered. */
static bool is_first_list(const struct top *top)
{
    return !top->model.is_complete;
}

#define OPEN_PATH API_PATH "/jobs?sparse=1&state=queued,starting,running,stopping&limit=" NUMBER(OPEN_MAX)

static void take_jobs(struct top *top, json_t *answer)
{
    size_t index = 0;
    json_t *job = NULL;
    json_array_foreach(json_object_get(answer, "jobs"), index, job) top_jobs_put(&top->model.jobs, job);
    top_jobs_prune(&top->model.jobs, clock_wall_ms());
    top->view.is_list_old = true;
}

static void take_running(struct top *top, json_t *answer)
{
    take_jobs(top, answer);
    top->is_urgent = true;
}

static void take_quick(struct top *top, json_t *answer)
{
    top_jobs_reset(&top->model.jobs);
    take_jobs(top, answer);
    top->is_urgent = true;
    top->model.is_complete = true;
    top->model.is_cut = json_array_size(json_object_get(answer, "jobs")) >= OPEN_MAX;
}

static void take_open(struct top *top, json_t *answer)
{
    take_quick(top, answer);
    top_poke(top, ASK_ENDED);
    top_poke(top, ASK_CHANGED);
}

static bool is_list_there(const struct top *top)
{
    return top->model.is_complete;
}

/* Values on the screen that change without an event. */
static void touch_shown(struct top *top)
{
    for (size_t i = 0; i < top->view.n_shown; i++) {
        const struct top_job *job = top_jobs_find(&top->model.jobs, top->view.shown[i]);
        if (job != NULL && job->job != NULL && !job_is_done(job->job))
            top_jobs_touch(&top->model.jobs, job->id);
    }
}

static char *changed_path(struct top *top)
{
    touch_shown(top);
    _cleanup_free_ char *ids = top_jobs_take_changed(&top->model.jobs, CHANGED_MAX);
    return ids == NULL ? NULL : xasprintf(API_PATH "/jobs?sparse=1&all=1&ids=%s", ids);
}

/* If there are more than one request can name, such as the elements of a long array, several requests follow
 * each other. */
static void take_changed(struct top *top, json_t *answer)
{
    take_jobs(top, answer);
    if (top_jobs_have_changed(&top->model.jobs))
        top_poke(top, ASK_CHANGED);
}

/* --- GPUs and nodes --- */

static void take_gpus(struct top *top, json_t *answer)
{
    top->is_urgent = top->is_urgent || top->model.gpus == NULL;
    keep(&top->model.gpus, answer, "gpus");
}

static bool is_past_wanted(const struct top *top)
{
    return top->view.page == PAGE_MAIN && top->layout.has_line && !top->layout.is_cells &&
           top->layout.panels[PANEL_GPUS].height > 0;
}

static void take_past(struct top *top, json_t *answer)
{
    keep(&top->model.past, answer, "gpus");
}

static void take_nodes(struct top *top, json_t *answer)
{
    keep(&top->model.nodes, answer, "nodes");
}

/* --- the selected job --- */

static bool is_why_wanted(const struct top *top)
{
    const json_t *job = top_selected(top);
    bool is_seen = top->view.page == PAGE_JOB || top->layout.panels[PANEL_LOG].height > 0;
    return job != NULL && field_is(job, "state", "queued") && is_seen;
}

static char *why_path(struct top *top)
{
    top->model.why_id = top->view.selected;
    return xasprintf(API_PATH "/jobs/%" PRId64 "/why", top->view.selected);
}

static void take_why(struct top *top, json_t *answer)
{
    keep(&top->model.why, answer, NULL);
}

static bool is_detail_wanted(const struct top *top)
{
    return top->view.page == PAGE_JOB && top->view.selected > 0;
}

static char *detail_path(struct top *top)
{
    top->model.detail_id = top->view.selected;
    return xasprintf(API_PATH "/jobs/%" PRId64, top->view.selected);
}

static void take_detail(struct top *top, json_t *answer)
{
    keep(&top->model.detail, answer, NULL);
    if (top->model.detail_past == NULL)
        top_poke(top, ASK_DETAIL_PAST);
}

/* The period and steps in which the past of its GPUs is shown: of all of them, if these are not too many. */
static char *detail_past_path(struct top *top)
{
    const json_t *job = top->model.detail, *gpu = json_array_get(json_object_get(job, "granted"), 0);
    const char *uuid = field_text(gpu, "uuid");
    int64_t started_ms = time_parse(field_text(job, "started_at"));
    int64_t seconds = top->view.range == RANGE_MINUTES ? 600 : 3600, step = 10;
    bool is_for_all = json_array_size(top->model.gpus) <= LAYOUT_GPU_ROWS_MAX;
    if (uuid == NULL || started_ms == 0 || job_is_done(job)) // an ended job has its own timeline
        return NULL;
    if (top->view.range == RANGE_ALL)
        seconds = (clock_wall_ms() - started_ms) / 1000 + 1;
    if (seconds > 600)
        step = (seconds / DETAIL_POINTS / 60 + 1) * 60;
    return xasprintf(API_PATH "/gpus/history?since=%" PRId64 "&step=%" PRId64 "%s%s", seconds, step,
        is_for_all ? "" : "&gpu=", is_for_all ? "" : uuid);
}

static void take_detail_past(struct top *top, json_t *answer)
{
    keep(&top->model.detail_past, answer, NULL);
}

static void refuse_detail(struct top *top)
{
    json_decref(top->model.detail);
    top->model.detail = NULL;
}

/* --- users and the past --- */

static bool is_users_page(const struct top *top)
{
    return top->view.page == PAGE_USERS;
}

static void take_users(struct top *top, json_t *answer)
{
    keep(&top->model.users, answer, "users");
}

static void take_sums(struct top *top, json_t *answer)
{
    keep(&top->model.sums, answer, "sums");
}

static bool is_history_page(const struct top *top)
{
    return top->view.page == PAGE_HISTORY;
}

static void take_history(struct top *top, json_t *answer)
{
    keep(&top->model.history, answer, "jobs");
    top->view.is_list_old = true;
}

const struct top_ask top_asks[ASKS] = {
    [ASK_RUNNING] = { 0, is_first_list, API_PATH "/jobs?sparse=1&state=starting,running,stopping", NULL,
        take_running, NULL },
    [ASK_QUICK] = { 0, is_first_list, OPEN_PATH "&quick=1", NULL, take_quick, NULL },
    [ASK_OPEN] = { 0, NULL, OPEN_PATH, NULL, take_open, NULL },
    [ASK_ENDED] = { 0, is_list_there,
        API_PATH "/jobs?sparse=1&state=done,failed,cancelled&limit=" NUMBER(TOP_ENDED_MAX), NULL, take_jobs,
        NULL },
    [ASK_CHANGED] = { CALM_MS, is_list_there, NULL, changed_path, take_changed, NULL },
    [ASK_GPUS] = { 1, NULL, API_PATH "/gpus", NULL, take_gpus, NULL }, // at the interval of --refresh
    [ASK_PAST] = { CALM_MS, is_past_wanted, API_PATH "/gpus/history?since=10m&step=10", NULL, take_past,
        NULL },
    [ASK_NODES] = { CALM_MS, NULL, API_PATH "/nodes", NULL, take_nodes, NULL },
    [ASK_WHY] = { CALM_MS, is_why_wanted, NULL, why_path, take_why, NULL },
    [ASK_DETAIL] = { 5000, is_detail_wanted, NULL, detail_path, take_detail, refuse_detail },
    [ASK_DETAIL_PAST] = { CALM_MS, is_detail_wanted, NULL, detail_past_path, take_detail_past, NULL },
    [ASK_USERS] = { 5000, is_users_page, API_PATH "/users", NULL, take_users, NULL },
    [ASK_SUMS] = { 60000, is_users_page, API_PATH "/history?by=user&since=7d", NULL, take_sums, NULL },
    [ASK_HISTORY] = { CALM_MS, is_history_page, API_PATH "/history?since=7d&limit=500", NULL, take_history,
        NULL },
};

char *top_ask_path(struct top *top, enum top_ask_id ask)
{
    return top_asks[ask].request != NULL ? xstrdup(top_asks[ask].request) : top_asks[ask].path(top);
}

void top_poke(struct top *top, enum top_ask_id ask)
{
    top->wire.due_ms[ask] = 0;
}

int64_t top_ask_due(const struct top *top, enum top_ask_id ask)
{
    const struct top_ask *row = &top_asks[ask];
    return row->is_wanted == NULL || row->is_wanted(top) ? top->wire.due_ms[ask] : INT64_MAX;
}

void top_asks_begin(struct top *top)
{
    for (int i = 0; i < ASKS; i++)
        top->wire.due_ms[i] = 0;
    top->wire.due_ms[ASK_ENDED] = INT64_MAX; // after the list of open jobs
}

/* Delayed, so that several changes within a second cause one request. */
static void poke_soon(struct top *top, enum top_ask_id ask, int64_t delay_ms)
{
    int64_t when = clock_boot_ms() + delay_ms, soonest = top->wire.last_ms[ask] + ASK_AGAIN_MS;
    when = when > soonest ? when : soonest;
    if (top->wire.due_ms[ask] > when)
        top->wire.due_ms[ask] = when;
}

void top_asks_event(struct top *top, const char *type, const char *text)
{
    if (strcmp(type, "reset") == 0) {
        top_asks_begin(top);
        return;
    }
    _cleanup_json_ json_t *event = json_loads(text, 0, NULL);
    int64_t id = field_integer(event, "job", 0), element = field_integer(event, "element", 0);
    top_jobs_touch(&top->model.jobs, id);
    top_jobs_touch(&top->model.jobs, element);
    poke_soon(top, ASK_CHANGED, 200);
    poke_soon(top, ASK_GPUS, 200);
    poke_soon(top, ASK_WHY, 1000);
    if (id == 0)
        poke_soon(top, ASK_NODES, 200);
    if (id == top->view.selected)
        poke_soon(top, ASK_DETAIL, 200);
}

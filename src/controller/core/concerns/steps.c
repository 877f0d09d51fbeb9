/* SPDX-License-Identifier: MIT */
/*
 * Steps of running jobs (job/step.h). They divide the resources that the scheduler has given to their job. A
 * step begins when its share is free, in the order in which the steps of a job were requested, and its client
 * runs the tasks. The client keeps its request open while the step runs. When it has been closed for AWAY_MS,
 * the client has left and the step ends; a client whose connection broke repeats its request before that.
 *
 *   WAITING ── its share is free: EVENT_STEP_STARTED ──> RUNNING ── EVENT_STEP_ENDED, or its attempt ends
 *      └── its client leaves, or its job stops: it never was ──^
 *
 * The running steps of each job are a row of the store; waiting ones are not stored. A step also waits while
 * it would make the row too long, which takes thousands of steps, or tens on a thousand nodes each.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/concerns/steps.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/behind.h"
#include "job/step.h"

#define AWAY_MS 15000
#define KIND    "steps"

struct core_steps {
    struct job_share *first;
    bool is_freed; // a waiting step has left: those behind it may begin
    bool has_away; // a client may have closed its request
};

/* --- lists --- */

static struct job_share *find(const struct core *core, uint64_t job)
{
    struct job_share *share = core->steps->first;
    while (share != NULL && share->job != job)
        share = share->next;
    return share;
}

static struct job_share *make(struct core *core, uint64_t job, uint32_t attempt)
{
    struct job_share *share = find(core, job);
    if (share == NULL) {
        share = xcalloc(1, sizeof(*share));
        *share = (struct job_share){ .job = job, .attempt = attempt, .next = core->steps->first };
        core->steps->first = share;
    }
    return share;
}

static struct step *append(struct job_share *share, const struct job_step *asked)
{
    struct step **link = &share->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = xcalloc(1, sizeof(**link));
    record_copy(&job_step_record, &(*link)->step, asked);
    return *link;
}

static void drop(struct job_share *share, struct step *step)
{
    struct step **link = &share->first;
    while (*link != step)
        link = &(*link)->next;
    *link = step->next;
    record_clear(&job_step_record, &step->step);
    free(step);
}

static void drop_share(struct core *core, struct job_share *share)
{
    struct job_share **link = &core->steps->first;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    while (share->first != NULL)
        drop(share, share->first);
    free(share);
}

/* --- the row of the store --- */

static void row_key(uint64_t job, char key[24])
{
    (void)snprintf(key, 24, "%" PRIu64, job);
}

/* The row with the running steps, and with `next` unless that is NULL. Its texts are borrowed; the caller
 * frees row.steps.items. */
static struct job_steps describe(const struct job_share *share, const struct step *next)
{
    struct job_steps row = { .attempt = share->attempt, .begun = share->begun };
    struct job_step *steps = NULL;
    for (const struct step *step = share->first; step != NULL; step = step->next)
        if (step->is_running || step == next) {
            steps = xreallocarray(steps, row.steps.count + 1, sizeof(*steps));
            steps[row.steps.count++] = step->step;
        }
    row.steps.items = steps;
    return row;
}

static void keep(struct core *core, const struct job_share *share)
{
    struct job_steps row = describe(share, NULL);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    (void)record_encode_readable(&job_steps_record, &row, &bytes, &(struct error){ 0 });
    free(row.steps.items);
    row_key(share->job, key);
    store_batch_put(core_batch(core)->changes, KIND, key, &bytes);
}

/* True if the row is short enough for a record when this step runs as well, whatever its tasks will use. */
static bool fits_row(const struct job_share *share, const struct step *next)
{
    struct job_steps row = describe(share, next);
    struct job_step *steps = row.steps.items;
    const struct job_step most = {
        .max_rss = UINT64_MAX,
        .ave_rss = UINT64_MAX,
        .max_rss_task = UINT32_MAX,
        .user_ms = UINT64_MAX,
        .system_ms = UINT64_MAX,
    };
    for (size_t i = 0; i < row.steps.count; i++)
        job_step_set_usage(&steps[i], &most);
    bool is_fitting =
        row.steps.count == 1 || record_check(&job_steps_record, &row, &(struct error){ 0 }) == 0;
    free(steps);
    return is_fitting;
}

static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct job_steps row;
    int64_t job = 0;
    int r = parse_integer(key, "job", 1, INT64_MAX, &job, err);
    if (r == 0)
        r = record_decode(&job_steps_record, bytes, length, &row, err);
    if (r < 0)
        return r;
    struct job_share *share = make(core, (uint64_t)job, row.attempt);
    const struct job_step *steps = row.steps.items;
    share->begun = row.begun;
    for (size_t i = 0; i < row.steps.count; i++)
        append(share, &steps[i])->is_running = true;
    record_clear(&job_steps_record, &row);
    return 0;
}

/* Their clients have lost their connections to the previous mgpud. */
static void begin(struct core *core)
{
    struct job_share *next = NULL;
    for (struct job_share *share = core->steps->first; share != NULL; share = next) {
        const struct core_entry *entry = core_find(core, share->job);
        next = share->next;
        if (entry == NULL || !job_state_is_active(entry->job->state) ||
            entry->job->attempt != share->attempt) {
            drop_share(core, share);
            continue;
        }
        for (struct step *step = share->first; step != NULL; step = step->next)
            step->away_ms = core->boot_ms;
        core->steps->has_away = true;
    }
}

/* --- beginning and ending --- */

static void reply(struct core *core, void *request, uint64_t job, const struct job_step *step)
{
    if (request != NULL)
        core_reply(core, request, &(struct core_answer){ .job = job, .step = step->id });
}

static void start(struct core *core, struct core_entry *entry, struct job_share *share, struct step *step)
{
    step->is_running = true;
    step->step.id = share->begun++;
    step->step.started_ms = core->now_ms;
    struct job_event event = { .type = EVENT_STEP_STARTED,
        .attempt = entry->job->attempt,
        .steps = { .items = &step->step, .count = 1 } };
    core_change(core, entry, &event, NULL);
    reply(core, step->request, share->job, &step->step);
}

/* Starts steps whose share is free, up to the first whose share is not: none overtakes another. True if there
 * were any; the caller stores the row. */
static bool start_waiting(struct core *core, struct job_share *share)
{
    struct core_entry *entry = core_find(core, share->job);
    bool has_started = false;
    for (struct step *step = share->first; step != NULL; step = step->next) {
        if (step->is_running)
            continue;
        if (!steps_fit(entry->job, share, &step->step) || !fits_row(share, step))
            break;
        start(core, entry, share, step);
        has_started = true;
    }
    return has_started;
}

/* The caller starts the steps that wait for its share, and stores the row. */
static void end(struct core *core, struct job_share *share, struct step *step, const struct job_step *how)
{
    struct core_entry *entry = core_find(core, share->job);
    bool is_stopped = entry->job->state == JOB_STOPPING;
    struct job_step ended = { .id = step->step.id,
        .end = is_stopped ? END_CANCELLED : how->end,
        .exit_code = how->exit_code,
        .signal = how->signal };
    job_step_set_usage(&ended, how->end == END_UNKNOWN ? &step->step : how);
    struct job_event event = {
        .type = EVENT_STEP_ENDED, .attempt = entry->job->attempt, .steps = { .items = &ended, .count = 1 }
    };
    drop(share, step);
    core_change(core, entry, &event, NULL);
}

static void refuse_waiting(struct core *core, struct job_share *share)
{
    struct step *next = NULL;
    for (struct step *step = share->first; step != NULL; step = next) {
        next = step->next;
        if (step->is_running)
            continue;
        struct core_answer answer = { .job = share->job };
        answer.code =
            error_set(&answer.err, -EALREADY, "job %" PRIu64 " ends: the step could not begin", share->job);
        core_reply(core, step->request, &answer);
        drop(share, step);
    }
}

/* Its steps end with its attempt, and none begins in an attempt that is being stopped. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    enum job_state state = entry->job->state;
    char key[24];
    struct job_share *share = state == JOB_RUNNING ? NULL : find(core, entry->job->id);
    if (share == NULL || state == JOB_STARTING)
        return;
    refuse_waiting(core, share);
    if (job_state_is_active(state))
        return;
    row_key(share->job, key);
    store_batch_remove(core_batch(core)->changes, KIND, key);
    drop_share(core, share);
}

/* --- requests --- */

static int complete_nodes(const struct job *job, struct job_step *step, struct error *err)
{
    struct job_step_node *nodes = step->nodes.items;
    uint64_t tasks = 0;
    for (size_t i = 0; i < step->nodes.count; i++)
        nodes[i].rank = UINT32_MAX; // not known yet
    for (size_t i = 0; i < step->nodes.count; i++) {
        int rank = job_rank_on(job, nodes[i].node);
        if (rank < 0)
            return error_set(err, -EINVAL, "%.60s is not a node of job %" PRIu64, nodes[i].node, job->id);
        if (steps_node_of(step, (uint32_t)rank) != NULL)
            return error_set(err, -EINVAL, "node %.60s is named twice", nodes[i].node);
        nodes[i].rank = (uint32_t)rank;
        tasks += nodes[i].tasks;
        if (nodes[i].tasks == 0)
            return error_set(err, -EINVAL, "the step has no tasks on node %.60s", nodes[i].node);
    }
    if (tasks == 0)
        return error_set(err, -EINVAL, "the step has no nodes");
    if (tasks > STEP_TASKS_MAX)
        return error_set(
            err, -E2BIG, "the step has %" PRIu64 " tasks; at most %u are possible", tasks, STEP_TASKS_MAX);
    return 0;
}

static int check_size(const struct job *job, struct job_step *step, struct error *err)
{
    if (steps_fit(job, NULL, step))
        return 0;
    return error_set(err, -EOVERFLOW,
        "the step requests more CPUs, memory or GPUs than job %" PRIu64 " has on a node", job->id);
}

static size_t count_open(const struct job_share *share)
{
    size_t count = 0;
    for (const struct step *step = share->first; step != NULL; step = step->next)
        count++;
    return count;
}

static int check_job(const struct job *job, const struct job_share *share, struct error *err)
{
    bool is_ending = job->state == JOB_STOPPING || job->state == JOB_DONE;
    if (job->ask->adopted_pid != 0)
        return error_set(err, -EINVAL,
            "job %" PRIu64 " is an adopted process, which mgpu did not start: it has no steps", job->id);
    if (!job_state_is_active(job->state) || is_ending)
        return error_set(err, -EALREADY, "job %" PRIu64 " is %s: steps need a running job", job->id,
            job_state_name(job_shown_state(job)));
    if (share != NULL && share->begun >= STEPS_MAX)
        return error_set(
            err, -EDQUOT, "job %" PRIu64 " has had %u steps, the limit of one attempt", job->id, STEPS_MAX);
    if (share == NULL || count_open(share) < STEPS_OPEN_MAX)
        return 0;
    (void)error_set(err, -EDQUOT, "job %" PRIu64 " has %u steps that run or wait, the limit of one job",
        job->id, STEPS_OPEN_MAX);
    return error_hint(err, "begin others when some have ended");
}

/* The step that this client has already begun. */
static struct step *find_known(const struct job_share *share, const struct job_step *asked)
{
    struct step *step = share != NULL && asked->key != NULL ? share->first : NULL;
    while (step != NULL && !text_equal(step->step.key, asked->key))
        step = step->next;
    return step;
}

static int add(struct core *core, struct core_entry *entry, const struct job_step *asked, void *request,
    struct error *err)
{
    struct job *job = entry->job;
    struct job_share *share = find(core, job->id);
    struct job_step step;
    int r = check_job(job, share, err);
    if (r < 0)
        return r;
    record_copy(&job_step_record, &step, asked);
    r = complete_nodes(job, &step, err);
    if (r == 0)
        r = check_size(job, &step, err);
    if (r == 0) {
        share = make(core, job->id, job->attempt);
        append(share, &step)->request = request;
        if (start_waiting(core, share))
            keep(core, share);
    }
    record_clear(&job_step_record, &step);
    return r;
}

void core_step_begin(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *asked, bool is_resumed, void *request)
{
    struct core_entry *entry = core_find(core, job);
    struct step *known = find_known(find(core, job), asked);
    struct core_answer answer = { .job = job };
    core_begin(core, boot_ms, wall_ms);
    answer.code = core_check_control(core, who, job, entry, &answer.err);
    if (answer.code == 0 && known == NULL && is_resumed)
        answer.code = error_set(&answer.err, -EALREADY, "the step of job %" PRIu64 " has ended", job);
    if (answer.code == 0 && known == NULL)
        answer.code = add(core, entry, asked, request, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return;
    }
    if (known == NULL)
        return;
    known->request = request;
    if (known->is_running)
        reply(core, request, job, &known->step);
}

const struct job_step *core_step(const struct core *core, uint64_t job, uint32_t id)
{
    const struct job_share *share = find(core, job);
    for (const struct step *step = share != NULL ? share->first : NULL; step != NULL; step = step->next)
        if (step->is_running && step->step.id == id)
            return &step->step;
    return NULL;
}

static struct step *find_running(const struct job_share *share, uint32_t id)
{
    struct step *step = share != NULL ? share->first : NULL;
    while (step != NULL && (!step->is_running || step->step.id != id))
        step = step->next;
    return step;
}

int core_step_usage(struct core *core, const struct identity *who, uint64_t job, const struct job_step *usage,
    struct error *err)
{
    struct step *step = find_running(find(core, job), usage->id);
    int r = core_check_control(core, who, job, core_find(core, job), err);
    if (r == 0 && step == NULL)
        r = error_set(err, -EALREADY, "step %" PRIu64 ".%u is not running", job, usage->id);
    if (r == 0)
        job_step_set_usage(&step->step, usage);
    return r;
}

void core_step_end(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *how, void *request)
{
    struct core_answer answer = { .job = job, .step = how->id };
    struct job_share *share = find(core, job);
    struct step *step = find_running(share, how->id);
    core_begin(core, boot_ms, wall_ms);
    answer.code = core_check_control(core, who, job, core_find(core, job), &answer.err);
    if (answer.code == 0 && step == NULL)
        answer.code = error_set(&answer.err, -EALREADY, "step %" PRIu64 ".%u is not running", job, how->id);
    if (answer.code == 0) {
        end(core, share, step, how);
        (void)start_waiting(core, share);
        keep(core, share);
    }
    core_reply(core, request, &answer);
}

static void forget(struct core *core, const void *request)
{
    for (struct job_share *share = core->steps->first; share != NULL; share = share->next)
        for (struct step *step = share->first; step != NULL; step = step->next) {
            if (step->request != request)
                continue;
            step->request = NULL;
            step->away_ms = core->boot_ms;
            core->steps->has_away |= step->is_running;
            if (step->is_running)
                return;
            drop(share, step);
            core->steps->is_freed = true;
            return;
        }
}

/* --- time --- */

static bool is_away(const struct step *step)
{
    return step->is_running && step->request == NULL;
}

static int64_t next_ms(const struct core *core)
{
    int64_t next = TIME_NEVER;
    const struct job_share *share = core->steps->has_away ? core->steps->first : NULL;
    for (; share != NULL; share = share->next)
        for (const struct step *step = share->first; step != NULL; step = step->next)
            if (is_away(step) && step->away_ms + AWAY_MS < next)
                next = step->away_ms + AWAY_MS;
    return core->steps->is_freed ? core->boot_ms : next;
}

/* True if there were any. */
static bool end_abandoned(struct core *core, struct job_share *share)
{
    const struct job_step how = { .end = END_UNKNOWN };
    bool has_ended = false;
    struct step *next = NULL;
    for (struct step *step = share->first; step != NULL; step = next) {
        next = step->next;
        if (!is_away(step) || step->away_ms + AWAY_MS > core->boot_ms)
            continue;
        end(core, share, step, &how);
        has_ended = true;
    }
    return has_ended;
}

static void run_due(struct core *core)
{
    core->steps->is_freed = false;
    for (struct job_share *share = core->steps->first; share != NULL; share = share->next) {
        bool has_ended = end_abandoned(core, share);
        if (start_waiting(core, share) || has_ended)
            keep(core, share);
    }
    core->steps->has_away = next_ms(core) != TIME_NEVER;
}

static void init(struct core *core)
{
    core->steps = xcalloc(1, sizeof(*core->steps));
}

static void clear(struct core *core)
{
    while (core->steps->first != NULL)
        drop_share(core, core->steps->first);
    free(core->steps);
}

static const struct core_kind kinds[] = { { .kind = KIND, .load = load }, { 0 } };

const struct core_concern core_concern_steps = {
    .name = "steps",
    .init = init,
    .free = clear,
    .kinds = kinds,
    .begin = begin,
    .events = CORE_ON_STOPPING | CORE_ON_OVER,
    .event = on_event,
    .forget = forget,
    .next_ms = next_ms,
    .run = run_due,
};

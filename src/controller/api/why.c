/* SPDX-License-Identifier: MIT */
/*
 * GET /jobs/ID/why. In a large cluster the answer takes copies of the scheduler and thousands of its steps,
 * so it is made in parts. Every request that waits for an answer is in the fair queue. When served, it
 * advances the question in progress, whether its own or not, and waits again until its own is answered. At
 * most one question is in progress, because each has a copy of the scheduler. Requests about the same job
 * share a question, and its answer is kept for later requests for a short time.
 *
 * GET /forecasts: the accuracy of such start times.
 */
#include "controller/api/why.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/external_text.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/core/forecasts.h"
#include "controller/core/park.h"
#include "controller/core/tables.h"
#include "controller/http/fair_queue.h"
#include "controller/http/slices.h"
#include "wire/json_job.h"
#include "wire/json_text.h"

#define KEPT_MS    1000
#define QUEUE_LONG 1000U // jobs; with a longer queue, an answer is valid for that time whatever happens
#define STEPS      1U    // steps of a forecast between two checks of the clock: one can start a thousand jobs

static json_t *write_time(int64_t at_ms)
{
    return json_text_time(at_ms == TIME_NEVER ? 0 : at_ms);
}

/* The nodes' reports about the GPUs of a reason: " (vm:6: pid 8123 (cy) python, 11.2 GiB)". */
static void append_states(struct serve *serve, const struct why_reason *reason, struct buffer *text)
{
    const struct core *core = serve->controller->core;
    size_t count = 0;
    if (reason->code != WHY_GPU_EXTERNAL && reason->code != WHY_GPU_PAUSED)
        return;
    for (size_t i = 0; i < reason->n_gpus; i++) {
        _cleanup_buffer_ struct buffer words = { 0 };
        const struct core_node *node = NULL;
        const struct core_gpu *known = core_gpu_of(core, &reason->gpus[i], &node);
        const struct gpu_state *gpu = known != NULL ? known->state : NULL;
        const struct cluster_change *fault = core_gpu_fault(node, known);
        if (gpu != NULL && reason->code == WHY_GPU_EXTERNAL)
            external_text_write(gpu, serve->names, &words);
        else if (fault != NULL)
            buffer_append_text(&words, fault->text);
        else if (gpu != NULL && gpu->refusal != NULL)
            buffer_append_text(&words, gpu->refusal);
        else if (gpu != NULL && gpu->trouble != NULL && core_gpu_mark(node, known) == NULL)
            buffer_append_text(&words, gpu->trouble);
        if (words.length == 0)
            continue;
        _cleanup_free_ char *name = core_gpu_name(core, &reason->gpus[i]);
        buffer_printf(text, "%s%s: %s", count++ == 0 ? " (" : "; ", name, buffer_text(&words));
        if (reason->code == WHY_GPU_EXTERNAL)
            buffer_printf(text, ", policy %s", external_policy_name(core_gpu_policy(core, known)));
    }
    if (count > 0)
        buffer_append_text(text, ")");
}

/* The administrators' marks on the GPUs or nodes of a reason: " (vm:0: fan)"; *until_ms is when the first of
 * them ends. */
static void append_marks(
    const struct core *core, const struct why_reason *reason, struct buffer *text, int64_t *until_ms)
{
    const struct cluster_change *last = NULL;
    bool is_node = reason->code == WHY_NODE_DRAINED;
    if (!is_node && reason->code != WHY_GPU_PAUSED)
        return;
    size_t count = 0;
    for (size_t i = 0; i < reason->n_gpus; i++) {
        const struct core_node *node = NULL;
        const struct core_gpu *gpu = core_gpu_of(core, &reason->gpus[i], &node);
        const struct cluster_change *mark = !is_node       ? core_gpu_mark(node, gpu)
                                            : node != NULL ? node->mark
                                                           : NULL;
        if (mark == NULL || mark == last)
            continue;
        last = mark;
        if (mark->until_ms != 0 && mark->until_ms < *until_ms)
            *until_ms = mark->until_ms;
        if (mark->text == NULL)
            continue;
        _cleanup_free_ char *name = is_node ? xstrdup(mark->node) : core_gpu_name(core, &reason->gpus[i]);
        buffer_printf(text, "%s%s: %s", count++ == 0 ? " (" : "; ", name, mark->text);
    }
    if (count > 0)
        buffer_append_text(text, ")");
}

static json_t *write_reason(struct serve *serve, const struct job *job, const struct why_reason *reason)
{
    const struct core *core = serve->controller->core;
    int64_t until_ms = reason->until_ms;
    _cleanup_buffer_ struct buffer text = { 0 };
    if (reason->is_own_failure && job->text != NULL)
        buffer_printf(&text, "its last attempt failed: %s", job->text);
    else
        buffer_append_text(&text, reason->text);
    append_marks(core, reason, &text, &until_ms);
    append_states(serve, reason, &text);
    json_t *jobs = json_array(), *gpus = json_array(), *object = json_object();
    for (size_t i = 0; i < reason->n_jobs; i++)
        (void)json_array_append_new(jobs, json_integer((json_int_t)reason->jobs[i]));
    for (size_t i = 0; i < reason->n_gpus; i++) {
        _cleanup_free_ char *name = core_gpu_name(core, &reason->gpus[i]);
        (void)json_array_append_new(gpus, json_text_string(name));
    }
    (void)json_object_set_new(object, "code", json_string(why_code_name(reason->code)));
    (void)json_object_set_new(object, "text", json_text_string(buffer_text(&text)));
    (void)json_object_set_new(object, "jobs", jobs);
    (void)json_object_set_new(object, "gpus", gpus);
    (void)json_object_set_new(object, "until", write_time(until_ms));
    return object;
}

static json_t *write_ahead(struct serve *serve, const struct why_ahead *ahead)
{
    const struct job *job = core_job(serve->controller->core, ahead->job);
    json_t *object = json_object();
    (void)json_object_set_new(object, "id", json_integer((json_int_t)ahead->job));
    (void)json_object_set_new(object, "user", json_text_string(job != NULL ? jobs_owner(serve, job) : NULL));
    (void)json_object_set_new(object, "name", json_text_string(job != NULL ? job->name : NULL));
    (void)json_object_set_new(object, "gpus", job != NULL ? json_integer(job->ask->gpus) : json_null());
    json_job_add_element(object, job);
    (void)json_object_set_new(object, "gpu_share",
        job != NULL && job->ask->gpu_share > 0 ? json_integer(job->ask->gpu_share) : json_null());
    (void)json_object_set_new(object, "eta", ahead->is_running ? json_null() : write_time(ahead->start_ms));
    (void)json_object_set_new(object, "ends", write_time(ahead->end_ms));
    return object;
}

static void add_number(json_t *object, const char *key, uint64_t now, uint64_t then)
{
    if (now != then)
        (void)json_object_set_new(object, key, then != 0 ? json_integer((json_int_t)then) : json_null());
}

/* The body of the edit that would change the request accordingly. */
static json_t *write_edit(const struct job_ask *ask, const struct class_key *changed)
{
    const struct sched_request *to = &changed->request;
    json_t *edit = json_object();
    if (ask->gpu_ids != NULL && to->n_picks == 0)
        (void)json_object_set_new(edit, "gpu_ids", json_null());
    if (ask->gpu_allow != NULL && to->n_allow == 0)
        (void)json_object_set_new(edit, "gpu_allow", json_null());
    if (ask->gpu_model != NULL && to->model == NULL)
        (void)json_object_set_new(edit, "gpu_model", json_null());
    if (ask->gpus != to->gpus)
        (void)json_object_set_new(edit, "gpus", json_integer(to->gpus));
    add_number(edit, "gpu_share", ask->gpu_share, to->share);
    add_number(edit, "gpu_mem", ask->gpu_mem, to->gpu_mem);
    add_number(edit, "memory", ask->memory, to->memory);
    if (ask->cpu_milli != 0 && ask->cpu_milli != to->cpu_milli)
        (void)json_object_set_new(edit, "cpus", json_real((double)to->cpu_milli / 1000));
    if (ask->nodes != 0)
        add_number(edit, "nodes", ask->nodes, to->nodes);
    if (ask->gpus_per_node != 0)
        add_number(edit, "gpus_per_node", ask->gpus_per_node, to->gpus_per_node);
    if (ask->time_limit_ms != changed->limit_ms)
        (void)json_object_set_new(edit, "time_limit", json_integer((changed->limit_ms + 999) / 1000));
    if (ask->priority != changed->priority)
        (void)json_object_set_new(edit, "priority", json_integer(changed->priority));
    if (ask->preemptible != changed->is_preemptible)
        (void)json_object_set_new(edit, "preemptible", json_boolean(changed->is_preemptible));
    return edit;
}

static json_t *write_change(const struct job_ask *ask, const struct why *why)
{
    if (why == NULL || !why->has_change)
        return json_null();
    json_t *object = json_object();
    (void)json_object_set_new(object, "text", json_text_string(why->change));
    (void)json_object_set_new(object, "edit", write_edit(ask, &why->changed));
    return object;
}

/* Why a host cannot be parked is known to the core alone. */
static char *parking_reason(const struct core *core, const struct why_park *park)
{
    const struct core_entry *host = park->is_barred ? core_find(core, park->host) : NULL;
    char *reason = host != NULL ? core_why_not_parked(core, host) : NULL;
    return reason != NULL ? reason : xstrdup(park->text);
}

static json_t *write_parking(const struct core *core, const struct why_park *park)
{
    if (park->text[0] == '\0')
        return json_null();
    _cleanup_free_ char *reason = parking_reason(core, park);
    _cleanup_free_ char *text =
        park->host != 0
            ? xasprintf("job %" PRIu64 " is not parked for this one, because %s", park->host, reason)
            : xasprintf("no job is parked for this one, because %s", reason);
    json_t *object = json_object();
    (void)json_object_set_new(
        object, "job", park->host != 0 ? json_integer((json_int_t)park->host) : json_null());
    (void)json_object_set_new(object, "text", json_text_string(text));
    return object;
}

/* It might have to start again, or has; NULL: neither. */
static char *borrowing_text(const struct core *core, const struct job *job)
{
    uint32_t margin = sched_settings(core_sched(core))->park_margin;
    if (job_was_reclaimed(job))
        return xasprintf("it started again because its GPUs were due to job %" PRIu64
                         ", which was parked; this does not happen a second time",
            job_park(job)->lender);
    if (!sched_may_borrow(core_sched(core), job->id))
        return NULL;
    return xasprintf("its command refuses to be parked, so it may start on GPUs that are due to a parked job "
                     "later, if it has probably ended in 1/%" PRIu32
                     " of that time; if it still runs then, it "
                     "starts again, once (--no-park prevents this)",
        margin);
}

static json_t *write_borrowing(const struct core *core, const struct job *job)
{
    _cleanup_free_ char *text = job != NULL && job->state == JOB_QUEUED ? borrowing_text(core, job) : NULL;
    return json_text_string(text);
}

/* GPUs that external processes use and that are allocated to jobs nevertheless. */
static void add_external(struct serve *serve, const struct core_node *node, json_t *array)
{
    const struct core *core = serve->controller->core;
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; node->is_up && i < node->hello.gpus.count; i++) {
        _cleanup_buffer_ struct buffer words = { 0 };
        const struct core_gpu *gpu = core_gpu_at(node, i);
        enum external_policy policy = core_gpu_policy(core, gpu);
        bool is_counted = core_gpu_is_used_externally(gpu) && policy != EXTERNAL_IGNORE;
        external_text_write(&gpus[i], serve->names, &words);
        if (words.length == 0 || is_counted)
            continue;
        _cleanup_free_ char *name = xasprintf("%s:%" PRIu32, node->name, gpus[i].index);
        json_t *object = json_object();
        (void)json_object_set_new(object, "gpu", json_text_string(name));
        (void)json_object_set_new(object, "text", json_text_string(buffer_text(&words)));
        (void)json_object_set_new(object, "policy", json_string(external_policy_name(policy)));
        (void)json_array_append_new(array, object);
    }
}

struct external_list {
    struct serve *serve;
    json_t *array;
};

static void visit_external(void *arg, const struct core_node *node)
{
    const struct external_list *list = arg;
    add_external(list->serve, node, list->array);
}

static json_t *write_external(struct serve *serve, const struct job_ask *ask, const struct why *why)
{
    struct external_list list = { .serve = serve, .array = json_array() };
    if (why != NULL && ask->gpus > 0)
        core_each_node(serve->controller->core, visit_external, &list);
    return list.array;
}

static json_t *write_basis(const char *text)
{
    return json_text_string(text[0] != '\0' ? text : NULL);
}

json_t *why_write(
    struct serve *serve, const struct job *job, const struct job_ask *ask, const struct why *why)
{
    const struct why none = WHY_NONE;
    const struct why *from = why != NULL ? why : &none;
    int64_t from_ms = 0, until_ms = 0;
    json_t *reasons = json_array(), *ahead = json_array(), *object = json_object();
    core_eta_interval(serve->controller->core, clock_wall_ms(), from->eta_ms, from->latest_ms, ask->begin_ms,
        &from_ms, &until_ms);
    for (size_t i = 0; i < from->n_reasons; i++)
        (void)json_array_append_new(reasons, write_reason(serve, job, &from->reasons[i]));
    for (size_t i = 0; i < from->n_ahead; i++)
        (void)json_array_append_new(ahead, write_ahead(serve, &from->ahead[i]));
    (void)json_object_set_new(object, "job", job != NULL ? json_integer((json_int_t)job->id) : json_null());
    (void)json_object_set_new(object, "state", json_string(job != NULL ? json_job_state(job) : "new"));
    (void)json_object_set_new(object, "starts_now", json_boolean(why != NULL && why->n_reasons == 0));
    (void)json_object_set_new(object, "reasons", reasons);
    (void)json_object_set_new(
        object, "position", from->position != 0 ? json_integer((json_int_t)from->position) : json_null());
    (void)json_object_set_new(object, "eta", write_time(from->eta_ms));
    (void)json_object_set_new(object, "eta_basis", write_basis(from->eta_basis));
    (void)json_object_set_new(object, "eta_from", json_text_time(from_ms));
    (void)json_object_set_new(object, "eta_until", json_text_time(until_ms));
    (void)json_object_set_new(object, "eta_latest", write_time(from->latest_ms));
    (void)json_object_set_new(object, "eta_latest_basis", write_basis(from->latest_basis));
    (void)json_object_set_new(object, "overtaken_until", write_time(from->overtaken_until_ms));
    (void)json_object_set_new(object, "promised_until", write_time(from->promised_ms));
    (void)json_object_set_new(object, "promise_basis", write_basis(from->promise_basis));
    (void)json_object_set_new(object, "ahead", ahead);
    (void)json_object_set_new(object, "parking", write_parking(serve->controller->core, &from->park));
    (void)json_object_set_new(object, "borrowing", write_borrowing(serve->controller->core, job));
    (void)json_object_set_new(object, "change", write_change(ask, why));
    (void)json_object_set_new(object, "external", write_external(serve, ask, why));
    return object;
}

/* --- questions --- */

struct asker {
    struct request *request;
    struct why_question *question; // NULL: it has been answered
    struct asker *next;
};

struct why_question {
    uint64_t job;
    int64_t version;     // version of the core when it began
    struct why_run *run; // NULL: not begun
    struct asker *askers;
    struct why_question *next;
};

static bool is_queue_long(const struct core *core)
{
    return sched_queue(core_sched(core))->length >= QUEUE_LONG;
}

static void remove_question(struct serve *serve, struct why_question *question)
{
    struct why_question **at = &serve->why_questions;
    while (*at != question)
        at = &(*at)->next;
    *at = question->next;
    if (question->run != NULL)
        core_why_end(question->run, NULL);
    free(question);
}

static void release_asker(struct request *request)
{
    struct asker *asker = request->work;
    struct why_question *question = asker->question;
    if (question != NULL) {
        struct asker **at = &question->askers;
        while (*at != asker)
            at = &(*at)->next;
        *at = asker->next;
        if (question->askers == NULL)
            remove_question(request->serve, question);
    }
    free(asker);
}

/* --- the answer --- */

static void keep(struct serve *serve, uint64_t id, int64_t version, const struct why *why)
{
    const struct job *job = core_job(serve->controller->core, id);
    struct kept_why *kept = &serve->why;
    free(kept->text);
    *kept = (struct kept_why){ .job = id, .version = version, .until_ms = clock_boot_ms() + KEPT_MS };
    kept->text = request_format_json(why_write(serve, job, job->ask, why));
}

/* The job is not waiting, or no longer, or for another one whose GPUs it will have. */
static void reply_no_reason(struct request *request, const struct job *job)
{
    struct why why;
    bool is_behind = core_why_behind(request->serve->controller->core, clock_wall_ms(), job, &why);
    request_hold_json(request, 200, why_write(request->serve, job, job->ask, is_behind ? &why : NULL));
}

static void answer(struct serve *serve, struct why_question *question)
{
    struct why why = { 0 };
    bool is_known = question->run != NULL && core_job(serve->controller->core, question->job) != NULL;
    if (question->run != NULL)
        core_why_end(question->run, &why);
    question->run = NULL;
    if (is_known)
        keep(serve, question->job, question->version, &why);
    why_clear(&why);
    while (question->askers != NULL) {
        struct asker *asker = question->askers;
        question->askers = asker->next;
        asker->question = NULL;
        if (is_known)
            request_hold_text(asker->request, 200, serve->why.text);
        else
            jobs_find(asker->request, question->job, reply_no_reason);
    }
    remove_question(serve, question);
}

/* --- the parts --- */

static struct why_question *in_progress(const struct serve *serve)
{
    struct why_question *question = serve->why_questions;
    while (question != NULL && question->run == NULL)
        question = question->next;
    return question;
}

static bool begin(const struct serve *serve, struct why_question *question)
{
    const struct core *core = serve->controller->core;
    question->version = core_version(core);
    question->run = core_why_begin(core, clock_wall_ms(), question->job);
    return question->run != NULL;
}

static void advance(struct request *request)
{
    const struct asker *asker = request->work;
    struct serve *serve = request->serve;
    if (asker->question == NULL)
        return;
    struct why_question *question = in_progress(serve);
    int64_t until_us = clock_boot_us() + SLICE_US;
    bool is_over = question == NULL && !begin(serve, question = asker->question);
    while (!is_over && clock_boot_us() < until_us)
        is_over = core_why_advance(question->run, STEPS);
    if (is_over)
        answer(serve, question);
    if (!request_is_over(request) && asker->question != NULL)
        fair_queue_add(request, advance);
}

/* Events since it began make it outdated, unless the queue is long. */
static bool is_outdated(const struct core *core, const struct why_question *question)
{
    bool is_same = core_version(core) != 0 && question->version == core_version(core);
    return question->run != NULL && !is_same && !is_queue_long(core);
}

static struct why_question *find_or_add(struct serve *serve, uint64_t job)
{
    const struct core *core = serve->controller->core;
    struct why_question **at = &serve->why_questions;
    while (*at != NULL && ((*at)->job != job || is_outdated(core, *at)))
        at = &(*at)->next;
    if (*at == NULL) {
        *at = xcalloc(1, sizeof(**at));
        (*at)->job = job;
    }
    return *at;
}

static bool is_kept(const struct serve *serve, const struct job *job)
{
    const struct core *core = serve->controller->core;
    const struct kept_why *kept = &serve->why;
    bool is_same = core_version(core) != 0 && kept->version == core_version(core);
    return kept->job == job->id && clock_boot_ms() < kept->until_ms &&
           (is_same || (job->state == JOB_QUEUED && is_queue_long(core)));
}

void handle_why(struct request *request, const struct job *job)
{
    struct serve *serve = request->serve;
    if (is_kept(serve, job)) {
        request_hold_text(request, 200, serve->why.text);
        return;
    }
    struct asker *asker = xcalloc(1, sizeof(*asker));
    struct why_question *question = find_or_add(serve, job->id);
    *asker = (struct asker){ .request = request, .question = question, .next = question->askers };
    question->askers = asker;
    request->work = asker;
    request->release = release_asker;
    advance(request);
}

/* --- GET /forecasts --- */

/* Compared with the interval that was predicted. */
enum outcome { WITHIN, EARLIER, LATER, STILL_WAITS, OUTCOMES };

static const char *const outcome_names[OUTCOMES] = { "within", "earlier", "later", "waiting" };

static enum outcome outcome_of(const struct kept_forecast *forecast)
{
    if (forecast->started_ms == 0)
        return STILL_WAITS;
    if (forecast->started_ms < forecast->parts_ms[0])
        return EARLIER;
    return forecast->started_ms > forecast->parts_ms[CALIBRATION_PARTS - 1] ? LATER : WITHIN;
}

static json_t *write_forecast(const struct kept_forecast *forecast)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "job", json_integer((json_int_t)forecast->job));
    (void)json_object_set_new(object, "told_at", json_text_time(forecast->made_ms));
    (void)json_object_set_new(object, "expected", json_text_time(forecast->expected_ms));
    (void)json_object_set_new(object, "from", json_text_time(forecast->parts_ms[0]));
    (void)json_object_set_new(object, "until", json_text_time(forecast->parts_ms[CALIBRATION_PARTS - 1]));
    (void)json_object_set_new(object, "started_at", json_text_time(forecast->started_ms));
    (void)json_object_set_new(object, "result", json_string(outcome_names[outcome_of(forecast)]));
    return object;
}

/* `range` CALIBRATION_RANGES: the sum of all ranges. */
static json_t *write_range(
    const struct calibration *calibration, unsigned range, const unsigned counts[OUTCOMES])
{
    json_t *object = json_object();
    bool is_all = range == CALIBRATION_RANGES;
    int64_t from_ms = range > 0 && !is_all ? calibration_range_ends_ms(range - 1) : 0;
    bool has_end = !is_all && range + 1 < CALIBRATION_RANGES;
    const double *factors = is_all ? NULL : calibration->factors[range];
    (void)json_object_set_new(object, "wait_from_s", is_all ? json_null() : json_integer(from_ms / 1000));
    (void)json_object_set_new(object, "wait_until_s",
        has_end ? json_integer(calibration_range_ends_ms(range) / 1000) : json_null());
    (void)json_object_set_new(
        object, "started", json_integer(counts[WITHIN] + counts[EARLIER] + counts[LATER]));
    for (size_t i = 0; i < OUTCOMES; i++)
        (void)json_object_set_new(object, outcome_names[i], json_integer(counts[i]));
    (void)json_object_set_new(object, "factor_from", is_all ? json_null() : json_real(exp2(factors[0])));
    (void)json_object_set_new(
        object, "factor_median", is_all ? json_null() : json_real(exp2(factors[CALIBRATION_PARTS / 2])));
    (void)json_object_set_new(
        object, "factor_until", is_all ? json_null() : json_real(exp2(factors[CALIBRATION_PARTS - 1])));
    return object;
}

void handle_forecasts(struct request *request)
{
    const struct core *core = request->serve->controller->core;
    unsigned counts[CALIBRATION_RANGES + 1][OUTCOMES] = { { 0 } };
    json_t *array = json_array(), *ranges = json_array(), *body = json_object();
    const struct kept_forecast *forecast = NULL;
    for (size_t i = 0; (forecast = core_kept_forecast(core, i)) != NULL; i++) {
        counts[calibration_range(forecast->expected_ms - forecast->made_ms)][outcome_of(forecast)]++;
        counts[CALIBRATION_RANGES][outcome_of(forecast)]++;
        (void)json_array_append_new(array, write_forecast(forecast));
    }
    for (unsigned i = 0; i <= CALIBRATION_RANGES; i++)
        (void)json_array_append_new(ranges, write_range(core_calibration(core), i, counts[i]));
    (void)json_object_set_new(body, "ranges", ranges);
    (void)json_object_set_new(body, "forecasts", array);
    request_hold_json(request, 200, body);
}

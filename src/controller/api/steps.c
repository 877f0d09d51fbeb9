/* SPDX-License-Identifier: MIT */
/*
 * /jobs/ID/steps. The response to a POST is one line of JSON, sent when the step begins; then it remains open
 * for as long as the step runs. When the request ends, the core knows that the client has left.
 */
#include "controller/api/steps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "job/step.h"
#include "wire/json_job.h"
#include "wire/json_text.h"
#include "wire/requests.h"

#define SIGNAL_MAX    64
#define EXIT_CODE_MAX 255

struct step_client {
    struct request *request;
    struct step_client *next, **where; // in the list of the API
    struct step_request asked;
    uint32_t id;
    bool is_running;
};

/* --- a step as JSON --- */

/* The GPUs of the step on a node, in the form of the job's grants. */
static json_t *write_gpus(const struct job *job, const struct job_step_node *node)
{
    json_t *gpus = json_array();
    const struct gpu_grant *grants = job->grants.items;
    uint64_t place = 0;
    for (size_t i = 0; i < job->grants.count; i++) {
        if (!text_equal(grants[i].node != NULL ? grants[i].node : job->node, node->node))
            continue;
        if (job_step_has_gpu(node, place))
            (void)json_array_append_new(
                gpus, json_pack("{s:I,s:I,s:o}", "place", (json_int_t)place, "index",
                          (json_int_t)grants[i].index, "uuid", json_text_string(grants[i].uuid)));
        place++;
    }
    return gpus;
}

static json_t *write_nodes(const struct job *job, const struct job_step *step)
{
    json_t *nodes = json_array();
    const struct job_step_node *items = step->nodes.items;
    for (size_t i = 0; i < step->nodes.count; i++)
        (void)json_array_append_new(
            nodes, json_pack("{s:o,s:I,s:I,s:o}", "node", json_text_string(items[i].node), "rank",
                       (json_int_t)items[i].rank, "tasks", (json_int_t)items[i].tasks, "gpus",
                       write_gpus(job, &items[i])));
    return nodes;
}

static const char *state_of(const struct job_step *step)
{
    if (step->ended_ms == 0)
        return job_state_name(JOB_RUNNING);
    return json_job_end_state((enum job_end)step->end, step->exit_code);
}

/* null until its client has reported usage. */
static void write_usage(json_t *object, const struct job_step *step)
{
    bool is_known = step->max_rss > 0;
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = { { "max_rss_bytes", step->max_rss }, { "max_rss_task", step->max_rss_task },
        { "ave_rss_bytes", step->ave_rss } };
    const struct {
        const char *name;
        uint64_t ms;
    } times[] = { { "cpu_seconds", step->user_ms + step->system_ms }, { "user_cpu_seconds", step->user_ms },
        { "system_cpu_seconds", step->system_ms } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        (void)json_object_set_new(
            object, sizes[i].name, is_known ? json_integer((json_int_t)sizes[i].value) : json_null());
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        (void)json_object_set_new(
            object, times[i].name, is_known ? json_real((double)times[i].ms / 1000.0) : json_null());
}

static json_t *write_step(const struct job *job, const struct job_step *step, uint32_t attempt)
{
    json_t *object = json_object();
    bool is_over = step->ended_ms != 0;
    (void)json_object_set_new(object, "job", json_integer((json_int_t)job->id));
    (void)json_object_set_new(object, "attempt", json_integer(attempt));
    (void)json_object_set_new(object, "id", json_integer(step->id));
    (void)json_object_set_new(object, "name", json_text_string(step->name));
    (void)json_object_set_new(object, "state", json_string(state_of(step)));
    (void)json_object_set_new(object, "tasks", json_integer(job_step_tasks(step)));
    (void)json_object_set_new(
        object, "cpus_per_task", step->cpus_per_task > 0 ? json_integer(step->cpus_per_task) : json_null());
    (void)json_object_set_new(
        object, "memory_bytes", step->memory > 0 ? json_integer((json_int_t)step->memory) : json_null());
    (void)json_object_set_new(object, "exact", json_boolean(step->exact));
    (void)json_object_set_new(object, "overlap", json_boolean(step->overlap));
    (void)json_object_set_new(object, "nodes", write_nodes(job, step));
    (void)json_object_set_new(object, "started_at", json_text_time(step->started_ms));
    (void)json_object_set_new(object, "ended_at", json_text_time(step->ended_ms));
    (void)json_object_set_new(
        object, "ended_by", is_over ? json_string(job_end_name((enum job_end)step->end)) : json_null());
    (void)json_object_set_new(object, "exit_code", is_over ? json_integer(step->exit_code) : json_null());
    (void)json_object_set_new(object, "signal", step->signal != 0 ? json_integer(step->signal) : json_null());
    write_usage(object, step);
    return object;
}

/* --- GET: the steps of a job --- */

struct step_list {
    struct job_step_history history;
};

static void release_list(struct request *request)
{
    struct step_list *list = request->work;
    job_step_history_clear(&list->history);
    free(list);
}

static void reply_list(struct request *request, const struct job *job)
{
    const struct step_list *list = request->work;
    struct job_step *steps = list->history.steps.items;
    const struct core *core = request->serve->controller->core;
    json_t *array = json_array();
    for (size_t i = 0; i < list->history.steps.count; i++) {
        const struct job_step *running =
            steps[i].ended_ms == 0 ? core_step(core, job->id, steps[i].id) : NULL;
        if (running != NULL)
            job_step_set_usage(&steps[i], running);
        (void)json_array_append_new(array, write_step(job, &steps[i], list->history.attempts[i]));
    }
    request_hold_json(request, 200, json_pack("{s:o}", "steps", array));
}

static void on_events(void *arg, const struct job_event *events, size_t count)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        struct step_list *list = request->work;
        for (size_t i = 0; i < count; i++)
            job_step_history_apply(&list->history, &events[i]);
        jobs_find(request, request->job, reply_list);
    }
    request_unref(request);
}

static void fetch(struct request *request, const struct job *job)
{
    request_ref(request);
    store_fetch_steps(request->serve->controller->store, job->id, on_events, request);
}

void handle_steps(struct request *request)
{
    request->work = xcalloc(1, sizeof(struct step_list));
    request->release = release_list;
    jobs_find(request, request->job, fetch);
}

/* --- POST: a step, while it runs --- */

static void release_client(struct request *request)
{
    struct step_client *client = request->work;
    *client->where = client->next;
    if (client->next != NULL)
        client->next->where = client->where;
    record_clear(&step_request_record, &client->asked);
    free(client);
}

static void on_begun(struct request *request, const struct core_answer *answer)
{
    struct step_client *client = request->work;
    const struct core *core = request->serve->controller->core;
    const struct job_step *step = core_step(core, answer->job, answer->step);
    const struct job *job = core_job(core, answer->job);
    struct error err = answer->err;
    if (answer->code == 0 && (step == NULL || job == NULL))
        (void)error_set(&err, -EALREADY, "the step of job %" PRIu64 " has ended", answer->job);
    if (answer->code < 0 || step == NULL || job == NULL) {
        request_reply_problem(request, &err);
        return;
    }
    json_t *object = write_step(job, step, job->attempt);
    _cleanup_free_ char *text = json_text_format(object);
    json_decref(object);
    client->id = step->id;
    client->is_running = true;
    request->is_patient = true;
    if (!request_start_stream(request, 200, "application/x-ndjson", STREAM_ENDLESS))
        return;
    request_stream(request, text, strlen(text));
    request_stream(request, "\n", 1);
}

static void copy_step(const struct step_request *asked, struct job_step *ret)
{
    *ret = (struct job_step){ .name = xstrdup(asked->name),
        .key = xstrdup(asked->key),
        .cpus_per_task = asked->cpus_per_task,
        .memory = asked->memory,
        .exact = asked->exact,
        .overlap = asked->overlap };
    const struct step_request_node *nodes = asked->nodes.items;
    struct job_step_node *copies = xcalloc(asked->nodes.count + 1, sizeof(*copies));
    for (size_t i = 0; i < asked->nodes.count; i++)
        copies[i] = (struct job_step_node){
            .node = xstrdup(nodes[i].node), .tasks = nodes[i].tasks, .gpus = nodes[i].gpus
        };
    ret->nodes = (struct record_list){ .items = copies, .count = asked->nodes.count };
}

static void begin(struct request *request, const struct job *job)
{
    struct step_client *client = request->work;
    struct job_step step;
    if (!jobs_check(request, ACTION_CONTROL, job, "start a step of it"))
        return;
    copy_step(&client->asked, &step);
    request->on_answer = on_begun;
    request->is_patient = true;
    core_step_begin(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
        job->id, &step, client->asked.resume, request);
    record_clear(&job_step_record, &step);
}

void handle_step(struct request *request)
{
    struct serve *serve = request->serve;
    struct error err = { 0 };
    struct step_client *client = xcalloc(1, sizeof(*client));
    *client = (struct step_client){
        .request = request, .next = serve->step_clients, .where = &serve->step_clients
    };
    if (client->next != NULL)
        client->next->where = &client->next;
    serve->step_clients = client;
    request->work = client;
    request->release = release_client;
    int r = request_read_body(request, &step_request_record, &client->asked, &err);
    if (r < 0)
        request_reply_problem(request, &err);
    else
        jobs_find(request, request->job, begin);
}

static bool ends(const struct job_event *event, const struct step_client *client)
{
    const struct job_step *step = event->steps.items;
    if (event->type == EVENT_STEP_ENDED)
        return event->steps.count == 1 && step->id == client->id;
    return event->type == EVENT_ENDED || event->type == EVENT_REQUEUED || event->type == EVENT_RETURNED;
}

void steps_publish(struct serve *serve, const struct job_event *event)
{
    struct step_client *next = NULL;
    for (struct step_client *client = serve->step_clients; client != NULL; client = next) {
        next = client->next;
        if (client->is_running && client->request->job == event->job && ends(event, client)) {
            client->is_running = false;
            request_end_stream(client->request);
        }
    }
}

/* --- POST end --- */

static void on_ended(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        request_reply_json(
            request, 200, json_pack("{s:I,s:i}", "job", (json_int_t)answer->job, "step", (int)answer->step));
}

static int check_end(const struct step_end_request *end, struct error *err)
{
    if (end->signal > SIGNAL_MAX)
        return error_set(err, -ERANGE, "signal: %u is outside 0 to %d", end->signal, SIGNAL_MAX);
    if (end->exit_code < 0 || end->exit_code > EXIT_CODE_MAX)
        return error_set(err, -ERANGE, "exit_code: %d is outside 0 to %d", end->exit_code, EXIT_CODE_MAX);
    return 0;
}

void handle_step_end(struct request *request, const struct job *job)
{
    struct step_end_request end = { 0 };
    struct error err = { 0 };
    if (!jobs_check(request, ACTION_CONTROL, job, "end a step of it"))
        return;
    int r = request_read_body(request, &step_end_request_record, &end, &err);
    if (r == 0)
        r = check_end(&end, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    const struct job_step how = { .id = end.step,
        .end = end.cancelled       ? END_CANCELLED
               : end.out_of_memory ? END_OOM
               : end.signal != 0   ? END_SIGNAL
                                   : END_EXIT,
        .exit_code = end.exit_code,
        .signal = end.signal,
        .max_rss = end.max_rss,
        .ave_rss = end.ave_rss,
        .max_rss_task = end.max_rss_task,
        .user_ms = end.user_ms,
        .system_ms = end.system_ms };
    request->on_answer = on_ended;
    core_step_end(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, job->id,
        &how, request);
}

/* --- POST usage --- */

void handle_step_usage(struct request *request, const struct job *job)
{
    struct step_usage_request asked = { 0 };
    struct error err = { 0 };
    if (!jobs_check(request, ACTION_CONTROL, job, "report the usage of a step of it"))
        return;
    int r = request_read_body(request, &step_usage_request_record, &asked, &err);
    const struct job_step usage = { .id = asked.step,
        .max_rss = asked.max_rss,
        .ave_rss = asked.ave_rss,
        .max_rss_task = asked.max_rss_task,
        .user_ms = asked.user_ms,
        .system_ms = asked.system_ms };
    if (r == 0)
        r = core_step_usage(request->serve->controller->core, &request->who, job->id, &usage, &err);
    if (r < 0)
        request_reply_problem(request, &err);
    else
        request_reply_json(
            request, 200, json_pack("{s:I,s:i}", "job", (json_int_t)job->id, "step", (int)asked.step));
}

/* --- POST signal --- */

static int read_signal(
    struct request *request, struct step_signal_request *ret, int *ret_signal, struct error *err)
{
    int r = request_read_body(request, &step_signal_request_record, ret, err);
    *ret_signal = r == 0 && ret->signal != NULL ? signal_find(ret->signal) : 0;
    if (r < 0 || ret->signal == NULL || *ret_signal != 0)
        return r;
    (void)error_set(err, -EINVAL, "signal: unknown signal %.60s", ret->signal);
    return error_hint(err, "a name such as USR1, or a number");
}

/* The client passes the signal to the tasks, as requested by a line of its response. */
static void signal_client(struct request *request, const struct step_signal_request *asked, int signal)
{
    struct error err = { 0 };
    struct step_client *client = request->serve->step_clients;
    while (client != NULL &&
           (!client->is_running || client->request->job != request->job || client->id != asked->step))
        client = client->next;
    if (client == NULL) {
        (void)error_set(&err, -EALREADY, "step %" PRIu64 ".%u is not running", request->job, asked->step);
        request_reply_problem(request, &err);
        return;
    }
    if (request_room(client->request) == 0) {
        (void)error_set(&err, -EUSERS, "step %" PRIu64 ".%u does not read its signals: too many are waiting",
            request->job, asked->step);
        request_reply_problem(request, &err);
        return;
    }
    _cleanup_free_ char *text =
        signal != 0 ? xasprintf("{\"signal\":%d}\n", signal) : xstrdup("{\"cancel\":true}\n");
    request_stream(client->request, text, strlen(text));
    request_reply_json(
        request, 202, json_pack("{s:I,s:i}", "job", (json_int_t)request->job, "step", (int)asked->step));
}

void handle_step_signal(struct request *request, const struct job *job)
{
    struct step_signal_request asked = { 0 };
    struct error err = { 0 };
    int signal = 0;
    if (!jobs_check(request, ACTION_CONTROL, job, "signal a step of it"))
        return;
    if (read_signal(request, &asked, &signal, &err) < 0)
        request_reply_problem(request, &err);
    else
        signal_client(request, &asked, signal);
    record_clear(&step_signal_request_record, &asked);
}

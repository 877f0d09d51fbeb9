/* SPDX-License-Identifier: MIT */
/*
 * The three calls of a small single-machine scheduler, for programs written for it: GET /status, GET /jobs,
 * and POST /acquire, which waits until a process has its GPUs. An acquisition is an adoption
 * (core/concerns/adopt.c): it is listed, explained and cancelled as a job, and ends with the process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/api/submit.h"
#include "job/alias.h"
#include "job/spec.h"
#include "wire/requests.h"

#define RECENT_MS   3600000 // an ended job is listed for this long
#define LISTED_MAX  10000U  // maximum number of jobs; only the first are listed
#define SERVICE     "mgpud"
#define ALIAS_LOWER 0x20

/* --- POST /acquire --- */

struct acquire {
    uint32_t pid;   // 0: the request is invalid
    uint64_t job;   // 0: unknown
    uint64_t after; // the job has a higher number than this
    bool is_given;
    uint32_t uid;
};

/* The job may exist before the answer, which waits for the disk. */
static void find_job(void *arg, const struct job *job)
{
    struct acquire *acquire = arg;
    if (job->state == JOB_QUEUED && job->ask->adopted_pid == acquire->pid && job->id > acquire->after)
        acquire->job = job->id;
}

/* If a client leaves while it waits, its request is withdrawn. */
static void release_acquire(struct request *request)
{
    struct acquire *acquire = request->work;
    if (acquire->job == 0 && acquire->pid != 0)
        core_each_job(request->serve->controller->core, find_job, acquire);
    if (acquire->job != 0 && !acquire->is_given && !request->serve->is_closing) // else the client returns
        core_cancel(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who,
            acquire->job, -1, NULL);
    free(acquire);
}

/* The number as eight lower-case letters and digits, which these programs expect. */
static json_t *write_id(uint64_t job)
{
    char alias[ALIAS_SIZE];
    (void)job_alias(job, alias);
    for (char *p = alias; *p != '\0'; p++)
        if (*p >= 'A' && *p <= 'F')
            *p = (char)(*p | ALIAS_LOWER);
    return json_string(alias);
}

/* "0,1" */
static json_t *write_gpus(const struct job *job)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const struct gpu_grant *grants = job->grants.items;
    for (size_t i = 0; i < job->grants.count; i++)
        buffer_printf(&text, "%s%" PRIu32, i == 0 ? "" : ",", grants[i].index);
    return json_string(buffer_text(&text));
}

static void give(struct request *request, const struct job *job)
{
    struct acquire *acquire = request->work;
    struct error err = { 0 };
    acquire->is_given = true;
    if (job->state != JOB_RUNNING) {
        (void)error_set(&err, -EALREADY, "job %" PRIu64 " ended before it had its GPUs%s%s", job->id,
            job->text != NULL ? ": " : "", job->text != NULL ? job->text : "");
        request_reply_problem(request, &err);
        return;
    }
    json_t *body = json_object();
    (void)json_object_set_new(body, "job_id", write_id(job->id));
    (void)json_object_set_new(body, "gpus", write_gpus(job));
    (void)json_object_set_new(body, "number", json_integer((json_int_t)job->id));
    request_reply_json(request, 200, body);
}

static void on_changed(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, answer->job, give);
}

/* The acquisition of a client that has lost its connection, for example because mgpud was restarted. */
static void find_returned(void *arg, const struct job *job)
{
    struct acquire *acquire = arg;
    bool is_open = job->state == JOB_QUEUED || job->state == JOB_STARTING || job->state == JOB_RUNNING;
    if (is_open && job->ask->adopted_pid == acquire->pid && job->uid == acquire->uid)
        acquire->job = job->id;
}

static void await_gpus(struct request *request, uint64_t job)
{
    struct acquire *acquire = request->work;
    acquire->job = job;
    request->job = job;
    request->is_patient = true;
    request->on_answer = on_changed;
    core_wait(request->serve->controller->core, job, 1U << JOB_RUNNING | 1U << JOB_DONE, request);
}

static void on_accepted(struct request *request, const struct core_answer *answer)
{
    struct acquire *acquire = request->work;
    if (answer->code < 0) {
        acquire->pid = 0;
        request_reply_problem(request, &answer->err);
        return;
    }
    await_gpus(request, answer->job);
}

static int read_acquire(struct request *request, struct job_spec *spec, struct error *err)
{
    struct acquire_request asked = { .num_gpus = 1 };
    int r = request_read_body(request, &acquire_request_record, &asked, err);
    if (r < 0)
        return r;
    if (asked.pid == 0)
        return error_set(err, -EINVAL, "pid is missing: the number of one of your processes");
    if (asked.num_gpus == 0)
        return error_set(err, -EINVAL, "num_gpus: at least one GPU is required");
    spec->ask.adopted_pid = asked.pid;
    spec->ask.gpus = asked.num_gpus;
    return submit_check_owner(request, true, err);
}

void handle_acquire(struct request *request)
{
    struct error err = { 0 };
    bool is_return = false;
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    request->work = xcalloc(1, sizeof(struct acquire));
    request->release = release_acquire;
    int r = query_get_flag(&request->query, "return", &is_return, &err);
    if (r == 0)
        r = read_acquire(request, spec, &err);
    if (r < 0) {
        job_spec_free(spec);
        request_reply_problem(request, &err);
        return;
    }
    request->on_answer = on_accepted;
    struct acquire *acquire = request->work;
    acquire->pid = spec->ask.adopted_pid;
    acquire->uid = request->who.uid;
    if (is_return)
        core_each_job(request->serve->controller->core, find_returned, acquire);
    if (acquire->job != 0) {
        job_spec_free(spec);
        await_gpus(request, acquire->job);
        return;
    }
    acquire->after = core_last_job(request->serve->controller->core);
    core_adopt(request->serve->controller->core, clock_boot_ms(), clock_wall_ms(), &request->who, spec, NULL,
        request);
}

/* --- GET /jobs --- */

struct listing {
    json_t *jobs;
    int64_t now_ms;
};

static const char *state_word(const struct job *job)
{
    switch (job->state) {
    case JOB_NEW:
    case JOB_QUEUED: return "queued";
    case JOB_STARTING:
    case JOB_RUNNING:
    case JOB_STOPPING: return "running";
    case JOB_DONE:
    case JOB_STATES: break;
    }
    return job->end == END_CANCELLED ? "cancelled" : job->exit_code == 0 ? "done" : "failed";
}

static void list_job(void *arg, const struct job *job)
{
    struct listing *listing = arg;
    if (job->state == JOB_DONE && listing->now_ms - job->ended_ms > RECENT_MS)
        return;
    if (json_array_size(listing->jobs) >= LISTED_MAX)
        return;
    json_t *row = json_object();
    (void)json_object_set_new(row, "id", write_id(job->id));
    (void)json_object_set_new(row, "number", json_integer((json_int_t)job->id));
    (void)json_object_set_new(row, "status", json_string(state_word(job)));
    (void)json_object_set_new(row, "gpus", write_gpus(job));
    (void)json_object_set_new(row, "num_gpus", json_integer(job->ask->gpus));
    (void)json_object_set_new(
        row, "pid", job->ask->adopted_pid != 0 ? json_integer(job->ask->adopted_pid) : json_null());
    (void)json_array_append_new(listing->jobs, row);
}

void handle_plain_jobs(struct request *request)
{
    const struct core *core = request->serve->controller->core;
    struct listing listing = { .jobs = json_array(), .now_ms = core_now_ms(core, clock_wall_ms()) };
    core_each_job(core, list_job, &listing);
    json_t *body = json_object();
    (void)json_object_set_new(body, "jobs", listing.jobs);
    request_hold_json(request, 200, body);
}

/* --- GET /status --- */

struct counts {
    const struct core *core;
    size_t gpus, allocated, running, queued;
};

static void count_job(void *arg, const struct job *job)
{
    struct counts *counts = arg;
    counts->queued += job->state == JOB_QUEUED;
    counts->running += job_state_is_active(job->state);
}

static void count_gpus(void *arg, const struct core_node *node)
{
    struct counts *counts = arg;
    const struct gpu_state *gpus = node->hello.gpus.items;
    counts->gpus += node->hello.gpus.count;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        counts->allocated += core_gpu_jobs(counts->core, node->name, gpus[i].index, NULL, 0) > 0;
}

/* The port in "HOST:PORT"; null if there is none. */
static json_t *write_port(const char *listen)
{
    const char *colon = listen == NULL ? NULL : strrchr(listen, ':');
    return colon != NULL ? json_integer(strtol(colon + 1, NULL, 10)) : json_null();
}

void handle_status(struct request *request)
{
    const struct controller *controller = request->serve->controller;
    struct counts counts = { .core = controller->core };
    core_each_job(controller->core, count_job, &counts);
    core_each_node(controller->core, count_gpus, &counts);
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        { "uptime_s", (uint64_t)(clock_boot_ms() - request->serve->started_ms) / 1000 },
        { "gpus_total", counts.gpus },
        { "gpus_allocated", counts.allocated },
        { "jobs_running", counts.running },
        { "jobs_queued", counts.queued },
        { "jobs_total", core_last_job(controller->core) },
    };
    json_t *body = json_object();
    (void)json_object_set_new(body, "service", json_string(SERVICE));
    (void)json_object_set_new(body, "version", json_string(MGPU_VERSION));
    (void)json_object_set_new(body, "port", write_port(controller->options.listen));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        (void)json_object_set_new(body, rows[i].name, json_integer((json_int_t)rows[i].value));
    request_hold_json(request, 200, body);
}

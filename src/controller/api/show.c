/* SPDX-License-Identifier: MIT */
/* GET /jobs/ID: the job, its events from the store and, for callers who may control it, its request. */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/api/terminal.h"
#include "controller/core/notification.h"
#include "job/end_advice.h"
#include "wire/json_event.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"
#include "wire/json_usage.h"
#include "wire/limits.h"

struct show {
    struct job_spec *spec;
    json_t *events;
    bool has_script; // requested
};

static void release_show(struct request *request)
{
    struct show *show = request->work;
    job_spec_free(show->spec);
    json_decref(show->events);
    free(show);
}

/* The text of a script may be long and is included only on request. */
static void add_spec(json_t *object, const struct job_spec *spec, bool has_script)
{
    struct json_members members = { .tree = object };
    json_table_add(&json_spec_table, spec, &members);
    if (has_script)
        (void)json_object_set_new(object, "script", json_text_string(spec->script));
}

static void add_notification(void *arg, const struct notification *notification, bool is_sending)
{
    json_t *array = arg, *object = json_object();
    bool is_waiting = notification->state == NOTIFICATION_WAITING;
    (void)json_object_set_new(object, "event", json_string(notify_event_name(notification->event)));
    (void)json_object_set_new(object, "to", json_text_string(notification->to));
    (void)json_object_set_new(
        object, "state", json_string(is_sending ? "sending" : notification_state_name(notification->state)));
    (void)json_object_set_new(object, "made_at", json_text_time(notification->made_ms));
    (void)json_object_set_new(object, "over_at", json_text_time(notification->over_ms));
    (void)json_object_set_new(object, "tries", json_integer(notification->tries));
    (void)json_object_set_new(
        object, "next_at", json_text_time(is_waiting && !is_sending ? notification->due_ms : 0));
    (void)json_object_set_new(object, "error", json_text_string(notification->text));
    (void)json_array_append_new(array, object);
}

static void add_notifications(json_t *object, const struct core *core, const struct job *job)
{
    json_t *notifications = json_array(), *notify = json_array();
    bool is_element = job->array_job != 0; // shown with its array
    for (size_t i = 0; !is_element && i < job->ask->notify.count; i++)
        (void)json_array_append_new(notify, json_text_string(job->ask->notify.items[i]));
    core_each_notification(core, job->id, add_notification, notifications);
    (void)json_object_set_new(object, "notify", notify);
    (void)json_object_set_new(object, "notify_on", json_text_string(is_element ? NULL : job->ask->notify_on));
    (void)json_object_set_new(object, "notices", notifications);
}

/* Adds advice and the cause if the job has ended. The cause is a line of the output, which not every user may
 * read. */
static void add_end(json_t *object, const struct request *request, const struct job *job)
{
    const struct job_usage *usage = jobs_usage(request->serve, job);
    bool is_over = job->state == JOB_DONE;
    _cleanup_free_ char *cause =
        is_over && core_may(&request->who, ACTION_READ, job) ? job_end_cause(job, usage) : NULL;
    (void)json_object_set_new(
        object, "advice", json_text_string(is_over ? job_end_advice(job, usage) : NULL));
    (void)json_object_set_new(object, "cause", json_text_string(cause));
}

static void reply_show(struct request *request, const struct job *job)
{
    struct show *show = request->work;
    json_t *object = jobs_write(request->serve, job, SHOW_QUEUE);
    if (show->spec != NULL)
        add_spec(object, show->spec, show->has_script);
    if (core_may(&request->who, ACTION_READ, job))
        add_notifications(object, request->serve->controller->core, job);
    add_end(object, request, job);
    if (core_may(&request->who, ACTION_READ, job))
        (void)json_object_set_new(object, "usage", json_usage_write(jobs_usage(request->serve, job), true));
    if (show->spec != NULL && show->spec->tty)
        (void)json_object_set_new(object, "viewers", terminals_write_viewers(request->serve, job->id));
    (void)json_object_set(object, "events", show->events);
    request_hold_json(request, 200, object);
}

/* The state after each event is the one at that time: an attempt that is being stopped now was running after
 * its start, unless it had been stopped before. */
static void add_events(struct request *request, const struct job_event *events, size_t count)
{
    struct show *show = request->work;
    const struct job *job = core_job(request->serve->controller->core, request->job);
    bool was_stopped = false;
    for (size_t i = 0; i < count; i++) {
        json_t *event = json_event_write(&events[i], job, request->serve->names);
        if (events[i].type == EVENT_ALLOCATED)
            was_stopped = false;
        was_stopped |= events[i].type == EVENT_STOP || events[i].type == EVENT_PREEMPTED;
        if (events[i].type == EVENT_STARTED)
            (void)json_object_set_new(
                event, "state", json_string(job_state_name(was_stopped ? JOB_STOPPING : JOB_RUNNING)));
        (void)json_array_append_new(show->events, event);
    }
}

static void on_events(void *arg, const struct job_event *events, size_t count)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        add_events(request, events, count);
        jobs_find(request, request->job, reply_show);
    }
    request_unref(request);
}

static void fetch_events(struct request *request)
{
    request_ref(request);
    store_fetch_events(
        request->serve->controller->store, 0, request->job, LIMIT_JOB_EVENTS, on_events, request);
}

static void on_spec(void *arg, uint64_t job, struct spec_bytes *bytes)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        struct show *show = request->work;
        show->spec = spec_bytes_decode(bytes);
        fetch_events(request);
    }
    spec_bytes_drop(bytes);
    request_unref(request);
}

static void begin_show(struct request *request, const struct job *job)
{
    if (!core_may(&request->who, ACTION_READ, job)) {
        fetch_events(request);
        return;
    }
    request_ref(request);
    store_fetch_spec(request->serve->controller->store, job->id, on_spec, request);
}

void handle_show(struct request *request)
{
    struct show *show = xcalloc(1, sizeof(*show));
    struct error err = { 0 };
    show->events = json_array();
    request->work = show;
    request->release = release_show;
    if (query_get_flag(&request->query, "script", &show->has_script, &err) < 0)
        request_reply_problem(request, &err);
    else
        jobs_find(request, request->job, begin_show);
}

/* SPDX-License-Identifier: MIT */
/* What each type of event adds is one function; the rest is common to all. */
#include "wire/json_event.h"

#include "wire/json_job.h"
#include "wire/json_text.h"

static void add_user(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "user", json_text_string(usernames_name(names, event->uid)));
}

static void add_allocation(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "node", json_text_string(event->node));
    (void)json_object_set_new(object, "granted", json_job_grants(&event->gpus));
}

static void add_reason(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "message", json_text_string(event->text));
}

static void add_end(json_t *object, const struct job_event *event, struct usernames *names)
{
    (void)json_object_set_new(object, "ended_by", json_string(job_end_name((enum job_end)event->end)));
    (void)json_object_set_new(object, "exit_code", json_integer(event->exit_code));
    (void)json_object_set_new(
        object, "signal", event->signal != 0 ? json_integer(event->signal) : json_null());
    (void)json_object_set_new(object, "run_seconds", json_text_seconds(event->run_ms));
    (void)json_object_set_new(object, "message", json_text_string(event->text));
}

/* The state that always follows the type; NULL where it depends on the state before. */
static const struct {
    const char *state;
    void (*add)(json_t *object, const struct job_event *event, struct usernames *names);
} types[EVENT_TYPES] = {
    [EVENT_SUBMITTED] = { "queued", add_user },
    [EVENT_ALLOCATED] = { "starting", add_allocation },
    [EVENT_STARTED] = { NULL, NULL },
    [EVENT_STOP] = { NULL, add_user },
    [EVENT_RETURNED] = { NULL, add_reason },
    [EVENT_ENDED] = { NULL, add_end },
};

static const char *state_after(const struct job_event *event, const struct job *job)
{
    if (job != NULL)
        return json_job_state(job);
    if (event->type == EVENT_ENDED)
        return json_job_end_state((enum job_end)event->end, event->exit_code);
    return event->type < EVENT_TYPES ? types[event->type].state : NULL;
}

json_t *json_event_write(const struct job_event *event, const struct job *job, struct usernames *names)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "seq", json_integer((json_int_t)event->seq));
    (void)json_object_set_new(object, "type", json_string(job_event_name((enum job_event_type)event->type)));
    (void)json_object_set_new(object, "job", json_integer((json_int_t)event->job));
    (void)json_object_set_new(object, "attempt", json_integer(event->attempt));
    (void)json_object_set_new(object, "at", json_text_time(event->wall_ms));
    (void)json_object_set_new(object, "state", json_text_string(state_after(event, job)));
    if (event->type < EVENT_TYPES && types[event->type].add != NULL)
        types[event->type].add(object, event, names);
    return object;
}

/* SPDX-License-Identifier: MIT */
#include "controller/effects.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "controller/api/api.h"
#include "controller/cluster/cluster.h"
#include "controller/config/groups.h"
#include "controller/nodes/links.h"
#include "controller/turns.h"

struct effects {
    struct controller *controller;
    struct event *timer;
};

static void commit(void *arg, struct store_batch *batch)
{
    struct effects *effects = arg;
    effects->controller->commit_us = clock_boot_us();
    store_commit(effects->controller->store, batch);
}

/* Adds the addresses of the other controllers, which the core does not know. False if the message is of
 * another kind. */
static bool send_with_controllers(
    const struct effects *effects, uint32_t link, const struct record_type *type, const void *message)
{
    struct controller *controller = effects->controller;
    bool is_welcome = type == &message_welcome_record, is_ack = type == &message_heartbeat_ack_record;
    if (controller->cluster == NULL || (!is_welcome && !is_ack))
        return false;
    _cleanup_free_ char *controllers = cluster_addresses(controller->cluster, CLUSTER_FOR_NODES);
    if (is_welcome) {
        struct message_welcome welcome = *(const struct message_welcome *)message;
        welcome.controllers = controllers;
        links_send(controller->links, link, type, &welcome);
    } else {
        struct message_heartbeat ack = *(const struct message_heartbeat *)message;
        ack.controllers = controllers;
        links_send(controller->links, link, type, &ack);
    }
    return true;
}

static void send_message(void *arg, uint32_t link, const struct record_type *type, const void *message)
{
    struct effects *effects = arg;
    if (!cluster_is_certain(effects->controller->cluster))
        return; // another controller may have become leader; this one is about to exit (main.c)
    if (!send_with_controllers(effects, link, type, message))
        links_send(effects->controller->links, link, type, message);
}

static void close_link(void *arg, uint32_t link)
{
    struct effects *effects = arg;
    links_close(effects->controller->links, link);
}

static void reply(void *arg, void *request, const struct core_answer *answer)
{
    struct effects *effects = arg;
    serve_reply(effects->controller->serve, request, answer);
}

/* Logs events that administrators should notice. */
static void log_change(const struct cluster_change *change)
{
    if (change->kind == CHANGE_GPU_DRAIN)
        log_node(LOG_WARNING, change->node, "GPU %s is out of service: %s; 'mgpu gpu resume' resumes it",
            change->uuid, change->text);
    if (change->kind == CHANGE_GPU_RETURN)
        log_node(LOG_INFO, change->node, "GPU %s is back in service: %s", change->uuid, change->text);
    if (change->kind == CHANGE_NODE_FENCE)
        log_node(LOG_WARNING, change->node, "it is fenced%s%s; its attempts have ended",
            change->text != NULL ? ": " : "", change->text != NULL ? change->text : "");
    if (change->kind == CHANGE_NODE_UNREACHABLE)
        log_node(LOG_WARNING, change->node,
            "it is unreachable; its jobs keep their resources until it is back or is fenced "
            "with 'mgpu node fence %s'",
            change->node);
}

/* If the log can be filtered by job, each start and end has a line; otherwise they would hide other lines. */
static void log_course(const struct job_event *event, const struct job *job)
{
    if (job == NULL || !log_has_fields())
        return;
    if (event->type == EVENT_STARTED)
        log_job(LOG_INFO, event->job, "%s, of uid %u, has started, attempt %u", job->name, job->uid,
            job->attempt);
    if (event->type == EVENT_ENDED && job->state == JOB_DONE)
        log_job(LOG_INFO, event->job, "%s, of uid %u, has ended: %s, exit code %d", job->name, job->uid,
            job_end_name(job->end), job->exit_code);
}

static void publish(void *arg, const struct job_event *event, const struct job *job)
{
    struct effects *effects = arg;
    if (event->type == EVENT_IDLE)
        log_job(LOG_INFO, event->job, "%s", event->text != NULL ? event->text : "idle");
    log_course(event, job);
    api_publish(effects->controller->serve, event, job);
    if (event->type == EVENT_CLUSTER && event->change.count == 1)
        log_change(event->change.items);
}

static void on_spec(void *arg, uint64_t job, struct spec_bytes *spec)
{
    struct effects *effects = arg;
    if (effects->controller->is_leaving)
        spec_bytes_drop(spec);
    else
        core_on_spec(effects->controller->core, job, spec);
}

static void fetch_spec(void *arg, uint64_t job)
{
    struct effects *effects = arg;
    store_fetch_spec(effects->controller->store, job, on_spec, effects);
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
    struct effects *effects = arg;
    int64_t began_us = turns_step_begin();
    core_timer(effects->controller->core, clock_boot_ms(), clock_wall_ms());
    turns_step_end(effects->controller->turns, began_us, "timers of", "jobs and nodes");
}

static void on_end(void *arg, uint64_t job, struct job *row)
{
    struct effects *effects = arg;
    struct core_fact fact = { .job = job };
    if (row != NULL) {
        fact.is_ok = row->end == END_EXIT && row->exit_code == 0;
        fact.began_ms = row->started_ms != 0 ? row->started_ms : row->ended_ms;
    }
    if (!effects->controller->is_leaving)
        core_on_end(effects->controller->core, clock_boot_ms(), clock_wall_ms(), &fact);
    job_free(row);
}

static void fetch_end(void *arg, uint64_t job)
{
    struct effects *effects = arg;
    store_fetch_job(effects->controller->store, job, on_end, effects);
}

static void arm(void *arg, int64_t boot_ms)
{
    struct effects *effects = arg;
    int64_t wait_ms = boot_ms - clock_boot_ms();
    if (wait_ms < 0)
        wait_ms = 0;
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    (void)evtimer_add(effects->timer, &wait);
}

static uint64_t random_number(void *arg)
{
    uint64_t value = 0;
    while (getrandom(&value, sizeof(value), 0) != sizeof(value))
        continue;
    return value;
}

static char *describe(void *arg, const struct job *job)
{
    struct effects *effects = arg;
    return api_describe(effects->controller->serve, job);
}

static const char *user_name(void *arg, uint32_t uid)
{
    struct effects *effects = arg;
    return serve_user_name(effects->controller->serve, uid);
}

static uint32_t group_of(void *arg, uint32_t uid, uint32_t gid)
{
    struct effects *effects = arg;
    return group_that_counts(&effects->controller->options, uid, gid);
}

struct effects *effects_new(struct controller *controller, struct core_effects *ret_table)
{
    struct effects *effects = xcalloc(1, sizeof(*effects));
    effects->controller = controller;
    effects->timer = evtimer_new(controller->loop, on_timer, effects);
    if (effects->timer == NULL)
        abort();
    *ret_table = (struct core_effects){
        .arg = effects,
        .commit = commit,
        .send = send_message,
        .close_link = close_link,
        .reply = reply,
        .publish = publish,
        .fetch_spec = fetch_spec,
        .fetch_end = fetch_end,
        .arm = arm,
        .random = random_number,
        .describe = describe,
        .user_name = user_name,
        .group_of = group_of,
    };
    return effects;
}

void effects_free(struct effects *effects)
{
    if (effects == NULL)
        return;
    event_free(effects->timer);
    free(effects);
}

/* SPDX-License-Identifier: MIT */
/* Every writer of a job's state goes through job_apply: the daemon, its restart, --fsck and the simulator. */
#include "job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct job *job_new(uint64_t id, const struct job_spec *spec)
{
    struct job *job = xcalloc(1, sizeof(*job));
    job->id = id;
    job->priority = spec->priority;
    job->gpus = spec->gpus;
    job->gpu_mem = spec->gpu_mem;
    job->gpu_ids = xstrdup(spec->gpu_ids);
    job->name = job_spec_display_name(spec);
    _cleanup_free_ char *command = text_quote_command(&spec->command);
    job->summary = text_escape(command, JOB_SUMMARY_MAX);
    return job;
}

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    free(job->gpu_ids);
    free(job->name);
    free(job->summary);
    free(job->node);
    free(job->boot_id);
    gpu_grants_clear(&job->grants);
    free(job->log_path);
    free(job->text);
    free(job);
}

void job_freep(struct job **job)
{
    job_free(*job);
}

static void set_text(char **field, const char *text)
{
    if (text == NULL)
        return;
    free(*field);
    *field = xstrdup(text);
}

static void on_submitted(struct job *job, const struct job_event *event)
{
    job->uid = event->uid;
    job->gid = event->gid;
    job->submitted_ms = event->wall_ms;
}

static void on_allocated(struct job *job, const struct job_event *event)
{
    job->attempt = event->attempt;
    job->token = event->token;
    set_text(&job->node, event->node);
    set_text(&job->boot_id, event->boot_id);
    gpu_grants_clear(&job->grants);
    gpu_grants_copy(&job->grants, &event->gpus);
}

static void on_started(struct job *job, const struct job_event *event)
{
    job->started_ms = event->wall_ms;
    set_text(&job->log_path, event->log_path);
}

static void on_stop(struct job *job, const struct job_event *event)
{
    job->stopped_by = event->uid;
    if (job->state != JOB_QUEUED)
        return;
    job->end = END_CANCELLED;
    job->ended_ms = event->wall_ms;
}

static void on_returned(struct job *job, const struct job_event *event)
{
    gpu_grants_clear(&job->grants);
    job->token = 0;
    job->started_ms = 0;
    free(take_ptr(job->node));
    free(take_ptr(job->boot_id));
    set_text(&job->text, event->text);
    if (job->state != JOB_STOPPING)
        return;
    job->end = END_CANCELLED;
    job->ended_ms = event->wall_ms;
}

static void on_ended(struct job *job, const struct job_event *event)
{
    job->end = (enum job_end)event->end;
    job->exit_code = event->exit_code;
    job->signal = event->signal;
    job->ended_ms = event->wall_ms;
    if (event->started_wall_ms != 0)
        job->started_ms = event->started_wall_ms;
    job->run_ms = event->run_ms;
    job->cpu_ms = event->cpu_ms;
    job->max_rss = event->max_rss;
    job->log_bytes = event->log_bytes;
    set_text(&job->log_path, event->log_path);
    free(take_ptr(job->text));
    set_text(&job->text, event->text);
}

static void (*const appliers[EVENT_TYPES])(struct job *, const struct job_event *) = {
    [EVENT_SUBMITTED] = on_submitted,
    [EVENT_ALLOCATED] = on_allocated,
    [EVENT_STARTED] = on_started,
    [EVENT_STOP] = on_stop,
    [EVENT_RETURNED] = on_returned,
    [EVENT_ENDED] = on_ended,
};

static bool is_for_this_attempt(const struct job *job, const struct job_event *event)
{
    switch (event->type) {
    case EVENT_ALLOCATED: return event->attempt == job->attempt + 1;
    case EVENT_STARTED:
    case EVENT_RETURNED:
    case EVENT_ENDED: return event->attempt == job->attempt;
    default: return true;
    }
}

int job_apply(struct job *job, const struct job_event *event, struct error *err)
{
    enum job_state next;
    const char *name = job_event_name((enum job_event_type)event->type);
    if (event->job != job->id)
        return error_set(
            err, -EPROTO, "event of job %" PRIu64 " applied to job %" PRIu64, event->job, job->id);
    if (!job_transition(job->state, (enum job_event_type)event->type, &next))
        return error_set(err, -EPROTO, "job %" PRIu64 " is %s: %s is not possible", job->id,
            job_state_name(job->state), name);
    if (!is_for_this_attempt(job, event))
        return error_set(err, -EPROTO, "job %" PRIu64 " is in attempt %u: %s speaks of attempt %u", job->id,
            job->attempt, name, event->attempt);
    appliers[event->type](job, event);
    job->state = next;
    return 0;
}

int job_invariant(const struct job *job, struct error *err)
{
    const char *broken = NULL;
    bool is_active = job_state_is_active(job->state);
    if (is_active && (job->attempt == 0 || job->token == 0 || job->node == NULL))
        broken = "an active job has an attempt, a token and a node";
    else if (is_active && job->gpus != job->grants.count)
        broken = "an active job holds as many GPUs as it asked for";
    else if (job->state == JOB_QUEUED && (job->grants.count > 0 || job->token != 0))
        broken = "a queued job holds nothing";
    else if ((job->state == JOB_DONE) != (job->end != END_NONE))
        broken = "a job has an end exactly when it is done";
    else if (job->state == JOB_DONE && job->ended_ms == 0)
        broken = "a job that is done has an end time";
    if (broken == NULL)
        return 0;
    return error_set(err, -EBADMSG, "job %" PRIu64 " (%s): %s", job->id, job_state_name(job->state), broken);
}

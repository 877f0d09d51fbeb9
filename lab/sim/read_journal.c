/* SPDX-License-Identifier: MIT */
/*
 * A journal as a workload: each job with its request, its submit time (of an element: that of its array), and
 * the duration of its last run. Jobs that never ran (cancelled, or still waiting when the journal was
 * written) or had not ended yet are left out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "lab/sim/by_id.h"
#include "lab/sim/journal.h"
#include "lab/sim/workload.h"
#include "sched/cluster/request.h"

struct journal_job {
    uint64_t id;
    bool is_over;
    int64_t submit_ms, started_ms;
    uint32_t uid, gid;
    uint64_t command_hash;
    struct job_ask ask;
};

struct journal_reader {
    struct journal_job *jobs; // by_id.h
    size_t count, room;
};

/* NULL: it has ended, or is unknown. */
static struct journal_job *find(const struct journal_reader *reader, uint64_t id)
{
    struct journal_job *job = by_id_find(reader->jobs, reader->count, sizeof(*reader->jobs), id);
    return job != NULL && !job->is_over ? job : NULL;
}

static void drop(struct journal_job *job)
{
    job_ask_clear(&job->ask);
    job->is_over = true;
}

static void take_ask(struct journal_job *job, const struct job_event *event)
{
    job_ask_clear(&job->ask);
    job_ask_copy(&job->ask, event->ask.items);
}

static int on_submitted(
    struct journal_reader *reader, const struct job_event *event, uint64_t command_hash, struct error *err)
{
    uint64_t last = reader->count > 0 ? reader->jobs[reader->count - 1].id : 0;
    if (event->ask.count != 1)
        return error_set(err, -EINVAL, "a submission requires a job and its \"ask\"");
    if (event->job <= last)
        return error_set(err, -EINVAL, "job %" PRIu64 " is submitted after job %" PRIu64, event->job, last);
    if (reader->count == reader->room) {
        reader->room = reader->room == 0 ? 512 : reader->room * 2;
        reader->jobs = xreallocarray(reader->jobs, reader->room, sizeof(*reader->jobs));
    }
    const struct journal_job *array = find(reader, event->array_job);
    struct journal_job *job = &reader->jobs[reader->count++];
    *job = (struct journal_job){
        .id = event->job,
        .submit_ms = array != NULL ? array->submit_ms : event->wall_ms,
        .uid = event->uid,
        .gid = event->gid,
        .command_hash = command_hash,
    };
    job_ask_copy(&job->ask, event->ask.items);
    return 0;
}

/* It has ended: adds a job to the workload. */
static int on_ended(struct workload *workload, const struct journal_job *job, const struct job_event *event,
    struct error *err)
{
    struct sched_request request;
    char user[32], group[32];
    int r = request_from_ask(&job->ask, &request, err);
    if (r < 0)
        return r;
    (void)snprintf(user, sizeof(user), "%" PRIu32, job->uid);
    (void)snprintf(group, sizeof(group), "%" PRIu32, job->gid);
    struct sim_job added = {
        .submit_ms = job->submit_ms,
        .duration_ms = event->run_ms > 0 ? event->run_ms : event->wall_ms - job->started_ms,
        .wall_ms = job->ask.time_limit_ms,
        .memory = request.memory,
        .command_hash = job->command_hash,
        .user = names_number(&workload->users, user),
        .group = names_number(&workload->groups, group),
        .gpus = request.gpus,
        .share = request.share,
        .cpu_milli = request.cpu_milli,
        .model = names_number(&workload->models, request.model == NULL ? "" : request.model),
    };
    workload->has_wall |= added.wall_ms > 0;
    workload_add(workload, &added);
    request_clear(&request);
    return 0;
}

static int on_event(
    struct line_reader *reader, const struct job_event *event, uint64_t command_hash, struct error *err)
{
    struct journal_reader *state = reader->state;
    struct journal_job *job = find(state, event->job);
    int r = 0;
    if (event->type == EVENT_SUBMITTED)
        return on_submitted(state, event, command_hash, err);
    if (job == NULL)
        return 0;
    switch (event->type) {
    case EVENT_STARTED: job->started_ms = event->wall_ms; return 0;
    case EVENT_REQUEUED:
    case EVENT_RETURNED: job->started_ms = 0; return 0;
    case EVENT_EDITED:
        if (event->ask.count == 1)
            take_ask(job, event);
        return 0;
    case EVENT_ENDED:
        if (job->started_ms > 0)
            r = on_ended(reader->workload, job, event, err);
        drop(job);
        return r;
    default: return 0;
    }
}

static int read_line(struct line_reader *reader, char *line, struct error *err)
{
    struct job_event event;
    uint64_t command_hash;
    if (*line == '\0')
        return 0;
    if (reader->number == 1) {
        int result = journal_head(line, err);
        reader->is_lost = result < 0;
        return result;
    }
    int result = journal_line(line, &event, &command_hash, err);
    if (result == 0)
        result = on_event(reader, &event, command_hash, err);
    job_event_clear(&event);
    return result;
}

int read_journal(
    struct workload *workload, const char *path, const struct trace_options *options, struct error *err)
{
    struct journal_reader state = { 0 };
    struct line_reader reader = {
        .path = path, .workload = workload, .options = options, .state = &state, .read = read_line
    };
    int result = lines_read(&reader, err);
    for (size_t i = 0; i < state.count; i++)
        job_ask_clear(&state.jobs[i].ask);
    free(state.jobs);
    return result;
}

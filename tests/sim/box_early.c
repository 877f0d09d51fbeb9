/* SPDX-License-Identifier: MIT */
/*
 * What must be true of a start before the GPUs of the job are free: it asked for it, or its command has used
 * GPUs late, as the events before it tell. Those are judged by a plain list of the latest times of each user
 * and command, made from the events alone.
 */
#include <string.h>

#include "box.h"
#include "job/park.h"

#define RUNS       3U
#define WORTH_MS   2000U // what an early start saves at least, where nobody asked for it
#define REMEMBERED (sizeof(((struct box *)NULL)->commands) / sizeof(struct box_command))

static struct box_command *find(struct box *box, const struct job *job)
{
    uint64_t command_hash = core_command_hash(job);
    size_t i = 0;
    while (i < box->n_commands &&
           (box->commands[i].command_hash != command_hash || box->commands[i].uid != job->uid))
        i++;
    if (i == REMEMBERED) {
        box_break(box, "there are more commands than the judge remembers", job->id);
        return &box->commands[0];
    }
    if (i == box->n_commands)
        box->commands[box->n_commands++] =
            (struct box_command){ .uid = job->uid, .command_hash = command_hash };
    return &box->commands[i];
}

static void learn(struct box_command *command, uint64_t first_use_ms)
{
    memmove(&command->runs_ms[1], &command->runs_ms[0], (RUNS - 1) * sizeof(command->runs_ms[0]));
    command->runs_ms[0] = first_use_ms;
    command->n_runs += command->n_runs < RUNS;
}

static bool is_late(const struct box_command *command)
{
    for (size_t i = 0; i < command->n_runs; i++)
        if (command->runs_ms[i] <= WORTH_MS)
            return false;
    return command->n_runs > 0 && !command->has_failed;
}

/* It has been given the GPUs without which it had started. One for which nobody waited was used at a
 * time that is not known. */
static void note_grant(struct box *box, const struct job *job, const struct job_event *event)
{
    int64_t early_ms = job_parked_ms(job, event->wall_ms), before_ms = early_ms - event->waited_ms;
    struct box_command *command = find(box, job);
    if (event->waited_ms > 0 && early_ms > 0)
        learn(command, before_ms > 0 ? (uint64_t)before_ms : 1);
    if (job->ask->early)
        command->has_failed = false;
}

static void note_end(struct box *box, const struct job *job, const struct job_event *event)
{
    const struct job_usage *usage = event->usage.count > 0 ? event->usage.items : NULL;
    bool has_failed = event->type == EVENT_REQUEUED
                          ? event->cause == REQUEUE_FAILED
                          : event->end == END_SIGNAL || (event->end == END_EXIT && event->exit_code != 0);
    if (usage != NULL && usage->first_use_ms > 0)
        learn(find(box, job), usage->first_use_ms);
    if (has_failed && job_is_early(job) && !job->ask->early)
        find(box, job)->has_failed = true;
}

void box_note_early(struct box *box, const struct job *job, const struct job_event *event)
{
    bool is_grant = event->type == EVENT_UNPARKED && event->text == NULL && job_is_early(job);
    if (is_grant)
        note_grant(box, job, event);
    else if (event->type == EVENT_ENDED || event->type == EVENT_REQUEUED)
        note_end(box, job, event);
}

static bool may_begin(struct box *box, const struct job *job)
{
    return job->ask->early || (box->was_auto && !job->ask->no_early && is_late(find(box, job)));
}

/* Nobody else who waits for one of these GPUs has started before it was free. */
void box_judge_early(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event)
{
    const struct gpu_grant *grants = event->gpus.items;
    if (!may_begin(box, job) || job_is_array(job) || event->nodes.count > 0)
        box_break(box, "it began early although it may not", job->id);
    box->tally.counts[TALLY_EARLY_UNASKED] += !job->ask->early;
    for (size_t i = 1; i <= highest; i++) {
        if (jobs[i] == NULL || jobs[i] == job || !job_is_early(jobs[i]) ||
            job_park(jobs[i])->phase != PARK_WAITING)
            continue;
        const struct gpu_grant *others = jobs[i]->grants.items;
        for (size_t k = 0; k < jobs[i]->grants.count; k++)
            for (size_t n = 0; n < event->gpus.count; n++)
                if (text_equal(others[k].uuid, grants[n].uuid))
                    box_break(box, "it began early for a GPU for which another one did", job->id);
    }
}

/* SPDX-License-Identifier: MIT */
#include "job/step.h"

#include <stdlib.h>

#include "base/memory.h"
#include "job/event.h"
#include "job/job_nodes.h"

static const struct record_field node_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct job_step_node, node, SPEC_NAME_MAX),
    RECORD_FIELD(2, RECORD_U32, struct job_step_node, rank, 0),
    RECORD_FIELD(3, RECORD_U32, struct job_step_node, tasks, 0),
    RECORD_FIELD(4, RECORD_U32, struct job_step_node, gpus, 0),
    RECORD_FIELD(5, RECORD_STRING, struct job_step_node, gpu_places, 8U * SPEC_GPUS_MAX),
};

static const struct record_type node_record = RECORD_TYPE(90, "step node", struct job_step_node, node_fields);

static const struct record_field step_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct job_step, id, 0),
    RECORD_FIELD(2, RECORD_STRING, struct job_step, name, STEP_NAME_MAX),
    RECORD_FIELD(3, RECORD_STRING, struct job_step, key, STEP_KEY_MAX),
    RECORD_FIELD(4, RECORD_U32, struct job_step, cpus_per_task, 0),
    RECORD_FIELD(5, RECORD_SIZE, struct job_step, memory, 0),
    RECORD_FIELD(6, RECORD_BOOL, struct job_step, exact, 0),
    RECORD_FIELD(7, RECORD_BOOL, struct job_step, overlap, 0),
    RECORD_SUBLIST(8, struct job_step, nodes, JOB_NODES_MAX, &node_record),
    RECORD_FIELD(9, RECORD_I64, struct job_step, started_ms, 0),
    RECORD_FIELD(10, RECORD_I64, struct job_step, ended_ms, 0),
    RECORD_FIELD(11, RECORD_U32, struct job_step, end, 0),
    RECORD_FIELD(12, RECORD_I32, struct job_step, exit_code, 0),
    RECORD_FIELD(13, RECORD_U32, struct job_step, signal, 0),
    RECORD_FIELD(400, RECORD_SIZE, struct job_step, max_rss, 0),
    RECORD_FIELD(401, RECORD_U32, struct job_step, max_rss_task, 0),
    RECORD_FIELD(402, RECORD_SIZE, struct job_step, ave_rss, 0),
    RECORD_FIELD(403, RECORD_U64, struct job_step, user_ms, 0),
    RECORD_FIELD(404, RECORD_U64, struct job_step, system_ms, 0),
};

const struct record_type job_step_record = RECORD_TYPE(91, "step", struct job_step, step_fields);

static const struct record_field steps_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct job_steps, attempt, 0),
    RECORD_FIELD(2, RECORD_U32, struct job_steps, begun, 0),
    RECORD_SUBLIST(3, struct job_steps, steps, STEPS_MAX, &job_step_record),
};

const struct record_type job_steps_record = RECORD_TYPE(92, "steps", struct job_steps, steps_fields);

uint32_t job_step_tasks(const struct job_step *step)
{
    const struct job_step_node *nodes = step->nodes.items;
    uint32_t count = 0;
    for (size_t i = 0; i < step->nodes.count; i++)
        count += nodes[i].tasks;
    return count;
}

bool job_step_has_gpu(const struct job_step_node *node, uint64_t place)
{
    for (const char *p = node->gpu_places; p != NULL && *p != '\0';) {
        char *end = NULL;
        if (strtoull(p, &end, 10) == place && end != p)
            return true;
        if (end == p || *end != ',')
            return false;
        p = end + 1;
    }
    return false;
}

void job_step_set_usage(struct job_step *step, const struct job_step *from)
{
    step->max_rss = from->max_rss;
    step->max_rss_task = from->max_rss_task;
    step->ave_rss = from->ave_rss;
    step->user_ms = from->user_ms;
    step->system_ms = from->system_ms;
}

/* Adds a copy to a list of struct job_step. */
static struct job_step *add(struct record_list *steps, const struct job_step *step)
{
    steps->items = xreallocarray(steps->items, steps->count + 1, sizeof(struct job_step));
    struct job_step *added = (struct job_step *)steps->items + steps->count++;
    record_copy(&job_step_record, added, step);
    return added;
}

static void clear(struct record_list *steps)
{
    struct job_step *items = steps->items;
    for (size_t i = 0; i < steps->count; i++)
        record_clear(&job_step_record, &items[i]);
    free(items);
    *steps = (struct record_list){ 0 };
}

static void begin(struct job_step_history *history, const struct job_event *event)
{
    size_t at = history->steps.count;
    struct job_step *step = add(&history->steps, event->steps.items);
    step->started_ms = event->wall_ms;
    history->attempts = xreallocarray(history->attempts, at + 1, sizeof(*history->attempts));
    history->attempts[at] = event->attempt;
}

/* The latest of that number that has not ended. */
static void end_one(struct job_step_history *history, const struct job_event *event)
{
    const struct job_step *ended = event->steps.items;
    struct job_step *steps = history->steps.items;
    for (size_t i = history->steps.count; i-- > 0;) {
        if (steps[i].id != ended->id || history->attempts[i] != event->attempt || steps[i].ended_ms != 0)
            continue;
        steps[i].ended_ms = event->wall_ms;
        steps[i].end = ended->end;
        steps[i].exit_code = ended->exit_code;
        steps[i].signal = ended->signal;
        job_step_set_usage(&steps[i], ended);
        return;
    }
}

static void end_all(struct job_step_history *history, const struct job_event *event)
{
    struct job_step *steps = history->steps.items;
    for (size_t i = 0; i < history->steps.count; i++)
        if (steps[i].ended_ms == 0) {
            steps[i].ended_ms = event->wall_ms;
            steps[i].end = END_CANCELLED;
        }
}

void job_step_history_apply(struct job_step_history *history, const struct job_event *event)
{
    if (event->type == EVENT_STEP_STARTED && event->steps.count == 1)
        begin(history, event);
    else if (event->type == EVENT_STEP_ENDED && event->steps.count == 1)
        end_one(history, event);
    else if (event->type == EVENT_ENDED || event->type == EVENT_REQUEUED || event->type == EVENT_RETURNED)
        end_all(history, event);
}

void job_step_history_clear(struct job_step_history *history)
{
    clear(&history->steps);
    free(history->attempts);
    *history = (struct job_step_history){ 0 };
}

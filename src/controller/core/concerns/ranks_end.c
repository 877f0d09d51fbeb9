/* SPDX-License-Identifier: MIT */
/*
 * The end of an attempt on several nodes, when all its parts are over: which of them tells how it ended. The
 * first failure is usually what the others failed of, but not always the first that is heard: a part fails at
 * once when its peer is gone, and that its peer's node is lost is proven minutes later.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/batch.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/concerns/ranks.h"
#include "controller/core/state.h"
#include "job/slurm.h"
#include "job/usage_merge.h"

#define EXIT_CODE_LOST 125

bool core_part_has_ended_well(const struct core_part *part)
{
    return part->state == PART_ENDED && part->exit.end == END_EXIT && part->exit.exit_code == 0;
}

bool core_part_has_run(const struct core_part *part)
{
    return part->state == PART_STARTED || (part->state == PART_ENDED && part->exit.is_executed != 0);
}

bool core_part_is_loss(const struct core_part *part)
{
    enum job_end end = part->state == PART_LOST ? part->end : (enum job_end)part->exit.end;
    bool is_told = part->state == PART_LOST || part->state == PART_ENDED;
    return is_told && (end == END_NODE_LOST || end == END_REBOOT);
}

/* The last word of the first node that was lost. What failed after it may have failed because that node was
 * gone: nobody can tell, and the loss is the better reason. */
static int64_t first_loss_ms(const struct core_parts *parts)
{
    int64_t loss_ms = TIME_NEVER;
    for (size_t i = 0; i < parts->count; i++)
        if (core_part_is_loss(&parts->items[i]) && parts->items[i].word_ms < loss_ms)
            loss_ms = parts->items[i].word_ms;
    return loss_ms;
}

/* Which of those that are over tells how the attempt ended; the lowest decides, and of equals the first. */
enum weight { FAILED, LOST, FAILED_AFTER_LOSS, GIVEN_UP, ENDED_FOR_OTHERS, FAILED_IN_STOP, ENDED_WELL };

static enum weight weight_of(const struct core_part *part, int64_t loss_ms, bool is_stopping)
{
    if (core_part_has_ended_well(part))
        return ENDED_WELL;
    if (core_part_is_loss(part) || part->state == PART_LOST)
        return LOST;
    if (part->state == PART_ENDED && part->exit.end != END_CANCELLED) {
        if (part->is_in_stop)
            return FAILED_IN_STOP;
        return part->word_ms > loss_ms ? FAILED_AFTER_LOSS : FAILED;
    }
    return (part->state == PART_RETURNED) != is_stopping ? GIVEN_UP : ENDED_FOR_OTHERS;
}

static uint32_t find_deciding(const struct core_entry *entry)
{
    const struct core_parts *parts = core_extra(entry)->parts;
    bool is_stopping = entry->job->state == JOB_STOPPING;
    int64_t loss_ms = first_loss_ms(parts);
    uint32_t found = 0;
    bool is_led = slurm_is_batch(&entry->job->ask->slurm);
    if (is_led && core_part_has_ended_well(&parts->items[0]))
        return 0;
    for (uint32_t rank = 1; rank < parts->count; rank++) {
        const struct core_part *part = &parts->items[rank], *best = &parts->items[found];
        enum weight weight = weight_of(part, loss_ms, is_stopping),
                    least = weight_of(best, loss_ms, is_stopping);
        if (weight < least || (weight == least && weight != ENDED_WELL && part->order < best->order))
            found = rank;
    }
    return found;
}

/* "rank 1 on gpu2: exit 3"; NULL when there is nothing to be said. */
static char *tell_end(const struct job *job, uint32_t rank, const struct core_part *part)
{
    const char *text = part->state == PART_ENDED ? part->exit.text : part->text;
    const char *node = job_node_name(job, rank);
    if (core_part_has_ended_well(part) || (part->state == PART_ENDED && part->exit.end == END_CANCELLED))
        return xstrdup(text);
    if (text != NULL)
        return xasprintf("rank %u on %s: %.900s", rank, node, text);
    if (part->state == PART_ENDED && part->exit.signal != 0)
        return xasprintf("rank %u on %s: signal %u", rank, node, part->exit.signal);
    if (part->state == PART_ENDED && part->exit.end == END_EXIT)
        return xasprintf("rank %u on %s: exit %d", rank, node, part->exit.exit_code);
    return xasprintf("rank %u on %s", rank, node);
}

static void add_up(const struct core_parts *parts, struct job_event *event)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct launch_exit *record = &parts->items[i].exit;
        bool is_earlier = event->started_wall_ms == 0 || record->started_wall_ms < event->started_wall_ms;
        if (record->started_wall_ms != 0 && is_earlier)
            event->started_wall_ms = record->started_wall_ms;
        event->run_ms = record->run_ms > event->run_ms ? record->run_ms : event->run_ms;
        event->max_rss = record->max_rss > event->max_rss ? record->max_rss : event->max_rss;
        event->cpu_ms += record->cpu_ms;
        event->log_bytes += record->log_bytes;
    }
}

/* What all made of their GPUs, and the last lines of the one that decides. */
static struct job_usage *merge_usage(const struct core_entry *entry, const struct core_part *deciding)
{
    const struct core_parts *parts = core_extra(entry)->parts;
    struct usage_part *each = xcalloc(parts->count, sizeof(*each));
    for (size_t i = 0; i < parts->count; i++)
        each[i] = (struct usage_part){ parts->items[i].exit.usage.items, job_node_gpus(entry->job, i) };
    struct job_usage *merged = job_usage_merge(each, parts->count);
    const struct job_usage *own = deciding->exit.usage.items;
    free(each);
    if (merged == NULL && deciding->exit.tail != NULL)
        merged = xcalloc(1, sizeof(*merged));
    if (merged == NULL)
        return NULL;
    merged->tail = xstrdup(deciding->exit.tail);
    if (own != NULL && own->xid != 0) {
        free(merged->fault);
        merged->fault = xstrdup(own->fault);
        merged->xid = own->xid;
    }
    return merged;
}

/* How each part ended, for the record. The texts are borrowed. */
static struct record_list describe_nodes(const struct job *job, const struct core_parts *parts)
{
    struct job_node *nodes = xcalloc(parts->count, sizeof(*nodes));
    for (size_t i = 0; i < parts->count; i++) {
        const struct core_part *part = &parts->items[i];
        nodes[i] = *job_node(job, i);
        nodes[i].log_path = part->log_path;
        nodes[i].exit_code = part->exit.exit_code;
        if (part->state == PART_ENDED)
            nodes[i].end = part->exit.end;
        else if (part->state == PART_LOST)
            nodes[i].end = part->end;
    }
    return (struct record_list){ nodes, parts->count };
}

static void set_end(const struct core_entry *entry, const struct core_part *part, struct job_event *event)
{
    event->exit_code = EXIT_CODE_LOST;
    if (part->state == PART_LOST) {
        event->end = part->end;
    } else if (part->state == PART_RETURNED) {
        event->end = entry->job->state == JOB_STOPPING ? END_CANCELLED : END_START_FAILED;
    } else {
        bool is_end = part->exit.end > END_NONE && part->exit.end < END_KINDS;
        event->end = is_end ? part->exit.end : END_UNKNOWN;
        event->exit_code = part->exit.exit_code;
        event->signal = part->exit.signal;
    }
}

/* Those that are not there now are told when they say it again. */
static void forget_all(struct core *core, const struct job *job, const struct core_parts *parts)
{
    for (uint32_t rank = 0; rank < parts->count; rank++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, rank));
        struct message_release_attempt forget = { .id = core_attempt_id(job, rank), .token = parts->token };
        if (node != NULL && node->is_up && parts->items[rank].state != PART_LOST)
            core_release_attempt(core, node->link, &forget);
    }
}

void core_parts_end(struct core *core, struct core_entry *entry)
{
    struct core_parts *parts = core_extra(entry)->parts;
    const struct job *job = entry->job;
    uint32_t rank = find_deciding(entry);
    const struct core_part *part = &parts->items[rank];
    _cleanup_free_ char *text = tell_end(job, rank, part);
    bool has_any_run = parts->may_have_gone && part->state == PART_LOST;
    for (size_t i = 0; i < parts->count; i++)
        has_any_run = has_any_run || core_part_has_run(&parts->items[i]);
    struct job_nodes *nodes = job_nodes_copy(&job_run(job)->nodes->nodes); // it may go back to the queue
    struct job was = {
        .id = job->id, .attempt = job->attempt, .node = NULL, .run = &(struct job_run){ .nodes = nodes }
    };
    core_make_extra(entry)->parts = NULL;
    if (!has_any_run && part->state != PART_ENDED) {
        core_give_back(core, entry, text);
    } else {
        struct job_event event = { .attempt = job->attempt };
        set_end(entry, part, &event);
        add_up(parts, &event);
        event.text = text;
        event.log_path = parts->items[0].log_path;
        event.nodes = describe_nodes(&was, parts);
        core_make_extra(entry)->parts = parts;
        struct job_usage *usage = merge_usage(entry, part);
        core_make_extra(entry)->parts = NULL;
        event.usage = (struct record_list){ usage, usage != NULL };
        core_close_attempt(core, entry, &event);
        free(event.nodes.items);
        job_usage_free(usage);
    }
    forget_all(core, &was, parts);
    job_nodes_free(nodes);
    core_make_extra(entry)->parts = parts;
}

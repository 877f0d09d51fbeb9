/* SPDX-License-Identifier: MIT */
/*
 * The end of an attempt on several nodes, when all its ranks have ended: chooses the rank that determines the
 * result. The first failure usually caused the others, but is not always reported first: a rank fails at once
 * when its peer is gone, while the loss of the peer's node is proven minutes later.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/concerns/ranks.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/refusal.h"
#include "controller/core/state.h"
#include "job/slurm.h"

#define EXIT_CODE_LOST 125

bool core_rank_has_ended_well(const struct core_rank *rank)
{
    return rank->state == RANK_ENDED && rank->exit.end == END_EXIT && rank->exit.exit_code == 0;
}

bool core_rank_has_run(const struct core_rank *rank)
{
    return rank->state == RANK_STARTED || (rank->state == RANK_ENDED && rank->exit.is_executed != 0);
}

bool core_rank_is_loss(const struct core_rank *rank)
{
    enum job_end end = rank->state == RANK_LOST ? rank->end : (enum job_end)rank->exit.end;
    bool is_reported = rank->state == RANK_LOST || rank->state == RANK_ENDED;
    return is_reported && (end == END_NODE_LOST || end == END_REBOOT);
}

/* The last message of the first node that was lost. Later failures may have been caused by that loss. This
 * cannot be determined, and the loss is the better explanation. */
static int64_t first_loss_ms(const struct core_ranks *ranks)
{
    int64_t loss_ms = TIME_NEVER;
    for (size_t i = 0; i < ranks->count; i++)
        if (core_rank_is_loss(&ranks->items[i]) && ranks->items[i].report_ms < loss_ms)
            loss_ms = ranks->items[i].report_ms;
    return loss_ms;
}

/* Which ended rank determines the end of the attempt: the lowest value, and the first among equals. */
enum weight { FAILED, LOST, FAILED_AFTER_LOSS, GIVEN_UP, ENDED_FOR_OTHERS, FAILED_IN_STOP, ENDED_WELL };

/* The clocks of their nodes are compared only if one of the nodes cannot tell how long ago its rank ended. */
static bool has_ended_before(const struct core_rank *rank, const struct core_rank *other)
{
    if (rank->ended_ms != 0 && other->ended_ms != 0)
        return rank->ended_ms < other->ended_ms;
    return rank->exit.ended_wall_ms < other->exit.ended_wall_ms;
}

/*
 * True if an earlier controller had stopped another rank before this one failed, which is then not the
 * reason. The times of two nodes are compared if this rank had ended before this controller received a report
 * from it. They are not if it ended later, because this controller may have stopped it.
 */
static bool is_after_stop(const struct core_ranks *ranks, const struct core_rank *rank)
{
    for (size_t i = 0; i < ranks->count; i++) {
        const struct core_rank *other = &ranks->items[i];
        if (other->state != RANK_ENDED || other->exit.end != END_CANCELLED)
            continue;
        bool is_earlier = !other->was_alive || other->order < rank->order;
        if (is_earlier && (rank->was_alive || has_ended_before(other, rank)))
            return true;
    }
    return false;
}

static enum weight weight_of(
    const struct core_ranks *ranks, const struct core_rank *rank, int64_t loss_ms, bool is_stopping)
{
    if (core_rank_has_ended_well(rank))
        return ENDED_WELL;
    if (core_rank_is_loss(rank) || rank->state == RANK_LOST)
        return LOST;
    if (rank->state == RANK_ENDED && rank->exit.end != END_CANCELLED) {
        if (rank->is_in_stop || is_after_stop(ranks, rank))
            return FAILED_IN_STOP;
        return rank->report_ms > loss_ms ? FAILED_AFTER_LOSS : FAILED;
    }
    return (rank->state == RANK_RETURNED) != is_stopping ? GIVEN_UP : ENDED_FOR_OTHERS;
}

static uint32_t find_deciding(const struct core_entry *entry)
{
    const struct core_ranks *ranks = core_extra(entry)->ranks;
    bool is_stopping = entry->job->state == JOB_STOPPING;
    int64_t loss_ms = first_loss_ms(ranks);
    uint32_t found = 0;
    bool is_led = slurm_is_on_first(&entry->job->ask->slurm);
    if (is_led && core_rank_has_ended_well(&ranks->items[0]))
        return 0;
    for (uint32_t number = 1; number < ranks->count; number++) {
        const struct core_rank *rank = &ranks->items[number], *best = &ranks->items[found];
        enum weight weight = weight_of(ranks, rank, loss_ms, is_stopping),
                    least = weight_of(ranks, best, loss_ms, is_stopping);
        if (weight < least || (weight == least && weight != ENDED_WELL && rank->order < best->order))
            found = number;
    }
    return found;
}

/*
 * The ranks were stopped without a request, because a rank had failed or was lost. After a restart of the
 * controller, a failure is reported again, but a loss is not if the node has returned.
 */
static bool is_for_forgotten_loss(const struct job *job, const struct core_rank *rank)
{
    return job->state != JOB_STOPPING && rank->state == RANK_ENDED && rank->exit.end == END_CANCELLED;
}

/* "rank 1 on gpu2: exit 3"; NULL if there is nothing to add. */
static char *describe_end(const struct job *job, uint32_t number, const struct core_rank *rank)
{
    if (is_for_forgotten_loss(job, rank))
        return xstrdup("one of its nodes was lost, and its other ranks were stopped");
    const char *text = rank->state == RANK_ENDED ? rank->exit.text : rank->text;
    const char *node = job_node_name(job, number);
    if (core_rank_has_ended_well(rank) || (rank->state == RANK_ENDED && rank->exit.end == END_CANCELLED))
        return xstrdup(text);
    if (text != NULL)
        return xasprintf("rank %u on %s: %.900s", number, node, text);
    if (rank->state == RANK_ENDED && rank->exit.signal != 0)
        return xasprintf("rank %u on %s: signal %u", number, node, rank->exit.signal);
    if (rank->state == RANK_ENDED && rank->exit.end == END_EXIT)
        return xasprintf("rank %u on %s: exit %d", number, node, rank->exit.exit_code);
    return xasprintf("rank %u on %s", number, node);
}

/* "rank 1 on gpu2: SIGTERM to 1 process (python3)", for each rank that was sent signals; NULL: none. */
static char *describe_signals(const struct job *job, const struct core_ranks *ranks)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (uint32_t number = 0; number < ranks->count; number++) {
        const char *signals =
            ranks->items[number].state == RANK_ENDED ? ranks->items[number].exit.signals : NULL;
        const char *node = job_node_name(job, number);
        if (signals != NULL && text.length + strlen(signals) + strlen(node) + 32 < EVENT_TEXT_MAX)
            buffer_printf(&text, "%srank %u on %s: %s", text.length > 0 ? "; " : "", number, node, signals);
    }
    return text.length > 0 ? buffer_take(&text) : NULL;
}

static void add_up(const struct core_ranks *ranks, struct job_event *event)
{
    for (size_t i = 0; i < ranks->count; i++) {
        const struct launch_exit *record = &ranks->items[i].exit;
        bool is_earlier = event->started_wall_ms == 0 || record->started_wall_ms < event->started_wall_ms;
        if (record->started_wall_ms != 0 && is_earlier)
            event->started_wall_ms = record->started_wall_ms;
        event->run_ms = record->run_ms > event->run_ms ? record->run_ms : event->run_ms;
        event->max_rss = record->max_rss > event->max_rss ? record->max_rss : event->max_rss;
        event->cpu_ms += record->cpu_ms;
        event->log_bytes += record->log_bytes;
    }
}

/* The usage of all ranks, and the last lines of the one that determines the result. */
static struct job_usage *merge_usage(const struct core_entry *entry, const struct core_rank *deciding)
{
    struct job_usage *merged = core_ranks_final_usage(entry);
    const struct job_usage *own = deciding->exit.usage.items;
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

/* How each rank ended, for the record. The texts are borrowed. */
static struct record_list describe_nodes(const struct job *job, const struct core_ranks *ranks)
{
    struct job_node *nodes = xcalloc(ranks->count, sizeof(*nodes));
    for (size_t i = 0; i < ranks->count; i++) {
        const struct core_rank *rank = &ranks->items[i];
        nodes[i] = *job_node(job, i);
        nodes[i].log_path = rank->log_path;
        nodes[i].exit_code = rank->exit.exit_code;
        if (rank->state == RANK_ENDED)
            nodes[i].end = rank->exit.end;
        else if (rank->state == RANK_LOST)
            nodes[i].end = rank->end;
    }
    return (struct record_list){ nodes, ranks->count };
}

static void set_end(const struct core_entry *entry, const struct core_rank *rank, struct job_event *event)
{
    event->exit_code = EXIT_CODE_LOST;
    if (rank->state == RANK_LOST) {
        event->end = rank->end;
    } else if (rank->state == RANK_RETURNED) {
        event->end = entry->job->state == JOB_STOPPING ? END_CANCELLED : END_START_FAILED;
    } else {
        bool is_end = rank->exit.end > END_NONE && rank->exit.end < END_KINDS;
        event->end = is_for_forgotten_loss(entry->job, rank) ? END_NODE_LOST
                     : is_end                                ? rank->exit.end
                                                             : END_UNKNOWN;
        event->exit_code = rank->exit.exit_code;
        event->signal = rank->exit.signal;
    }
}

/* Nodes that are not connected receive this when they report the rank again. */
static void forget_all(struct core *core, const struct job *job, const struct core_ranks *ranks)
{
    for (uint32_t number = 0; number < ranks->count; number++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, number));
        struct spool_id id = core_attempt_id(job, number);
        bool is_there = ranks->items[number].state != RANK_LOST || ranks->items[number].has_record;
        if (node != NULL && node->is_up && is_there)
            core_forget_stated(core, node, &id, ranks->token);
    }
}

void core_ranks_end(struct core *core, struct core_entry *entry)
{
    struct core_ranks *ranks = core_extra(entry)->ranks;
    const struct job *job = entry->job;
    uint32_t number = find_deciding(entry);
    const struct core_rank *rank = &ranks->items[number];
    _cleanup_free_ char *text = describe_end(job, number, rank), *signals = describe_signals(job, ranks);
    bool has_any_run = ranks->may_have_gone && rank->state == RANK_LOST;
    for (size_t i = 0; i < ranks->count; i++)
        has_any_run = has_any_run || core_rank_has_run(&ranks->items[i]);
    struct job_nodes *nodes = job_nodes_copy(&job_run(job)->nodes->nodes); // the job may go back to the queue
    struct job was = {
        .id = job->id, .attempt = job->attempt, .node = NULL, .run = &(struct job_run){ .nodes = nodes }
    };
    core_make_extra(entry)->ranks = NULL;
    enum start_class class = rank->state == RANK_ENDED ? core_start_class(&rank->exit) : START_WAITS;
    uint32_t cause = rank->state == RANK_ENDED ? rank->exit.cause : rank->cause;
    if (has_any_run || !core_start_failed(core, entry, job_node_name(&was, number), class, cause, text)) {
        struct job_event event = { .attempt = job->attempt };
        set_end(entry, rank, &event);
        add_up(ranks, &event);
        event.text = text;
        event.signals = signals;
        event.log_path = ranks->items[0].log_path;
        event.nodes = describe_nodes(&was, ranks);
        core_make_extra(entry)->ranks = ranks;
        struct job_usage *usage = merge_usage(entry, rank);
        core_make_extra(entry)->ranks = NULL;
        event.usage = (struct record_list){ usage, usage != NULL };
        core_close_attempt(core, entry, &event);
        free(event.nodes.items);
        job_usage_free(usage);
    }
    forget_all(core, &was, ranks);
    job_nodes_free(nodes);
    core_make_extra(entry)->ranks = ranks;
}

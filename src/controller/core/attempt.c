/* SPDX-License-Identifier: MIT */
/*
 * The end of an attempt: requeues or ends its job. A report about an attempt counts only if it has the token
 * of the job's current attempt; any other attempt is orphaned, and the agent is told to release it.
 */
#include "controller/core/attempt.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/gpu_oom.h"
#include "controller/core/marks.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "controller/core/usage.h"
#include "job/park.h"

#define EXIT_TIME_LIMIT 124  // as timeout(1)
#define EXIT_GPU_MEM    137  // as for a job that exceeds its host memory
#define ATTEMPTS_MAX    8U   // number of starts of a job that may be returned before it is given up
#define RETURN_WAIT_MS  1000 // after the first return; doubles each time
#define RETURN_WAIT_MAX 60000
#define RECALL_WAIT_MS  1
#define WANTED_WAIT_MS  1000 // for the change for which it was asked back

/* The message for the end of a job that did not use its GPUs; the caller frees it. */
static char *idle_text(const struct core *core, const struct job *job)
{
    char end[32];
    format_duration(idle_end_ms(&core->options.idle, job), end, sizeof(end));
    return xasprintf("it left all of its GPUs unused for %s", end);
}

/* The message for the end of a job that stayed above its share; the caller frees it. */
static char *share_text(const struct core_entry *entry, const struct job_event *event)
{
    const struct job_usage *usage = event->usage.count > 0 ? event->usage.items : core_extra(entry)->usage;
    struct optional used = usage_gpu_memory_peak(usage);
    char peak[32], cap[32];
    if (usage == NULL)
        return NULL;
    format_size(used.value, peak, sizeof(peak));
    format_size(usage->gpu_memory_cap, cap, sizeof(cap));
    if (!used.is_known)
        return xasprintf("it used more GPU memory than its share, %s", cap);
    return xasprintf("it used up to %s of GPU memory, and its share is %s", peak, cap);
}

/* The text if it was ended because one of its instances no longer exists; NULL: for another reason. */
static char *gone_text(const struct core *core, const struct job *job)
{
    const struct gpu_state *gpu = core_gone_instance(core, job);
    return gpu == NULL ? NULL
                       : xasprintf("GPU %" PRIu32 " (%s) does not exist any more: the MIG layout was changed",
                             gpu->index, gpu->model != NULL ? gpu->model : "MIG");
}

/* The node's wall clock may be wrong, or may have been set while the job ran: its times are limited to the
 * period between the last queueing of the job and the report of its start or, by its run time, the start
 * itself. */
static void bound_start(const struct core *core, const struct job *job, struct job_event *event)
{
    int64_t earliest_ms = job->queued_ms != 0 ? job->queued_ms : job->submitted_ms;
    int64_t latest_ms = core->now_ms - event->run_ms;
    if (event->started_wall_ms == 0)
        return;
    if (job->started_ms != 0 && job->started_ms < latest_ms)
        latest_ms = job->started_ms;
    if (event->started_wall_ms > latest_ms)
        event->started_wall_ms = latest_ms;
    if (event->started_wall_ms < earliest_ms)
        event->started_wall_ms = earliest_ms;
}

/* The text if it was ended because it could not continue after it was parked; its node's reason is in its
 * record. NULL: for another reason. */
static char *lost_text(const struct job *job)
{
    const struct job_park *park = job_park(job);
    if (park->number == 0)
        return NULL;
    return xasprintf("the driver could not continue it after it was parked: %.900s",
        park->text != NULL ? park->text : "it did not say why");
}

/* Why mgpu ended it because its GPU failed; NULL: its shepherd reports the reason. The caller frees it. */
static char *fault_text(const struct core *core, const struct job *job)
{
    char *text = gone_text(core, job);
    return text != NULL ? text : lost_text(job);
}

/* A job that mgpu preempts may have finished its work when it ends by itself. A job that its user requeued
 * goes back however it ends: a job that requeues itself exits right after requesting that. */
static bool is_to_go_back(const struct job *job, enum job_end end)
{
    bool is_own_end = end != END_CANCELLED && end != END_UNKNOWN && end != END_REBOOT && end != END_NODE_LOST;
    return job->is_requeued && (!is_own_end || job_run(job)->requeue_cause == REQUEUE_ASKED);
}

/* A job that its user cancels may fail before the signal reaches it, for example because a step is refused to
 * it since then. One that succeeds has done its work. */
static bool is_cancelled_failure(const struct job *job, const struct job_event *event)
{
    bool is_cancelled = job->state == JOB_STOPPING && job->stop_reason == END_CANCELLED;
    return is_cancelled && (event->end == END_SIGNAL || (event->end == END_EXIT && event->exit_code != 0));
}

/* The attempt has ended. The job is requeued if it was to go back, or if it requested a requeue after such an
 * end. */
static void end_attempt(struct core *core, struct core_entry *entry, struct job_event *event)
{
    const struct job *job = entry->job;
    bool is_stopped = event->end == END_CANCELLED || event->end == END_RELEASED;
    bool has_own_text = event->end == END_IDLE_TIMEOUT; // its shepherd's, about the terminal
    if ((is_stopped && job->stop_reason != END_NONE) || is_cancelled_failure(job, event))
        event->end = job->stop_reason;
    if (event->end == END_TIME_LIMIT || event->end == END_IDLE_TIMEOUT || event->end == END_BUDGET)
        event->exit_code = EXIT_TIME_LIMIT;
    if (event->end == END_GPU_MEM)
        event->exit_code = EXIT_GPU_MEM;
    _cleanup_free_ char *why = NULL;
    if (event->end == END_IDLE_TIMEOUT && !has_own_text)
        why = idle_text(core, job);
    else if (event->end == END_GPU_MEM)
        why = share_text(entry, event);
    else if (is_stopped && event->end == END_GPU_FAULT)
        why = fault_text(core, job);
    event->parked_ms = job_parked_ms(job, core->now_ms);
    event->run_ms = event->run_ms > event->parked_ms ? event->run_ms - event->parked_ms : 0;
    char *text = event->text;
    event->text = why != NULL ? why : text;
    event->wall_ms = core->now_ms;
    bound_start(core, job, event);
    bool goes_back = is_to_go_back(job, event->end);
    uint32_t jitter = (uint32_t)(core->effects.random(core->effects.arg) % (RETRY_JITTER_MAX + 1));
    if (goes_back)
        event->cause = job_run(job)->requeue_cause;
    struct job_ask larger;
    bool is_larger = !goes_back && core_gpu_oom_enlarge(core, entry, event, &larger);
    if (is_larger)
        event->cause = REQUEUE_GPU_OOM;
    bool is_requeued = goes_back || is_larger || job_requeue_decide(job, event, jitter);
    event->type = is_requeued ? EVENT_REQUEUED : EVENT_ENDED;
    core_change(core, entry, event, NULL);
    if (is_larger)
        core_gpu_oom_edit(core, entry, &larger);
    event->text = text;
    core_drop_usage(entry);
}

void core_begin_attempt(struct core *core, struct core_entry *entry, const char *log_path, const char *text)
{
    const struct job *job = entry->job;
    if (job->started_ms != 0 || (job->state != JOB_STARTING && job->state != JOB_STOPPING))
        return;
    struct job_event event = {
        .type = EVENT_STARTED, .attempt = job->attempt, .log_path = xstrdup(log_path), .text = xstrdup(text)
    };
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
    if (entry->extra != NULL)
        entry->extra->returns = 0;
}

void core_end_attempt(struct core *core, struct core_entry *entry, enum job_end end, const char *text)
{
    _cleanup_(job_event_clear) struct job_event event = {
        .attempt = entry->job->attempt,
        .end = end,
        .exit_code = 125,
        .text = xstrdup(text),
    };
    if (entry->job->started_ms != 0) // its end was not reported: the maximum possible
        event.run_ms = core->now_ms - entry->job->started_ms;
    end_attempt(core, entry, &event);
}

/* If a command failed after a driver error on one of its GPUs, that error is the reason. */
static void take_fault(struct job_event *event)
{
    const struct job_usage *usage = event->usage.items;
    bool has_failed = (event->end == END_EXIT && event->exit_code != 0) || event->end == END_SIGNAL;
    if (!has_failed || usage == NULL || xid_class_of(usage->xid) == XID_INFO || usage->fault == NULL)
        return;
    event->end = END_GPU_FAULT;
    if (event->text == NULL)
        event->text = usage->fault;
}

void core_close_attempt(struct core *core, struct core_entry *entry, struct job_event *event)
{
    take_fault(event);
    _cleanup_free_ char *out_of_memory = core_gpu_oom_recognise(event);
    if (out_of_memory != NULL)
        event->text = out_of_memory;
    end_attempt(core, entry, event);
}

/* The reason of a stop that refers to what the attempt did, which it cannot have done if it never ran. */
static enum job_end reason_in_attempt(const struct job *job)
{
    bool is_final = job->is_requeued || (job_run(job)->stop_terms & STOP_TERMS_USER) != 0;
    switch (job->stop_reason) {
    case END_TIME_LIMIT:
    case END_IDLE_TIMEOUT:
    case END_GPU_MEM:
    case END_GPU_FAULT: return is_final ? END_NONE : job->stop_reason;
    default: return END_NONE;
    }
}

static int64_t return_wait_ms(uint32_t returns)
{
    int64_t wait_ms = (int64_t)RETURN_WAIT_MS << (returns < 7 ? returns - 1 : 6);
    return wait_ms < RETURN_WAIT_MAX ? wait_ms : RETURN_WAIT_MAX;
}

static void give_back(struct core *core, struct core_entry *entry, int64_t wait_ms, const char *text)
{
    _cleanup_(job_event_clear) struct job_event event = { .type = EVENT_RETURNED,
        .attempt = entry->job->attempt,
        .reason = reason_in_attempt(entry->job),
        .retry_ms = core->now_ms + wait_ms,
        .text = xstrdup(text) };
    core_change(core, entry, &event, NULL);
}

void core_give_back_paced(struct core *core, struct core_entry *entry, const char *text)
{
    give_back(core, entry, RETURN_WAIT_MS, text);
}

/* It had not begun when its array was held. */
static void hold_with_array(struct core *core, struct core_entry *entry)
{
    const struct core_entry *array = core_extra(entry)->array;
    if (array == NULL || array->job->hold == 0 || entry->job->state != JOB_QUEUED)
        return;
    struct job_event event = { .type = EVENT_HELD, .uid = array->job->uid, .hold = array->job->hold };
    core_change(core, entry, &event, NULL);
}

void core_give_back_recalled(struct core *core, struct core_entry *entry, const char *text)
{
    const struct core_extra *extra = core_extra(entry);
    bool is_wanted = extra->wanted != 0 && extra->wanted == entry->job->token;
    give_back(core, entry, is_wanted ? WANTED_WAIT_MS : RECALL_WAIT_MS, text);
    hold_with_array(core, entry);
}

void core_give_back(struct core *core, struct core_entry *entry, const char *text)
{
    const struct job *job = entry->job;
    bool is_tried_again = job->state != JOB_STOPPING || reason_in_attempt(job) != END_NONE;
    uint32_t returns = core_extra(entry)->returns + 1;
    if (is_tried_again && returns >= ATTEMPTS_MAX) {
        _cleanup_free_ char *sentence = xasprintf(
            "given up after %u attempts to start it: %.800s", returns, text != NULL ? text : "no reason");
        core_end_attempt(core, entry, END_START_FAILED, sentence);
        return;
    }
    if (!is_tried_again) { // its start has not failed: it was preempted, or is requeued, or has ended
        give_back(core, entry, 0, text);
        return;
    }
    core_make_extra(entry)->returns = returns;
    give_back(core, entry, return_wait_ms(returns), text);
}

uint64_t core_next_token(const struct core *core, const struct core_entry *entry)
{
    uint64_t token = core_extra(entry)->next_token;
    return token != 0 ? token : core->effects.random(core->effects.arg) | 1;
}

int64_t core_node_lease_ms(const struct core *core, const struct job *job)
{
    return job->ask->requeue_on_node_lost ? core->options.loss.lease_ms : 0;
}

void core_write_grants(const struct core *core, const struct allocation *allocation, struct record_list *ret)
{
    const struct cluster *cluster = sched_cluster(core->sched);
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *from = &allocation->gpus[i];
        const struct cluster_node *node = &cluster->nodes[from->node];
        struct gpu_grant *grant = gpu_grants_add(
            ret, node->gpus[from->gpu].index, node->gpus[from->gpu].uuid, from->slot, from->memory);
        grant->share = from->share;
        if (from->node != allocation->nodes[0].node)
            grant->node = xstrdup(node->name);
    }
}

/* In order of rank, which is the order in which the scheduler took them. */
static void write_nodes(const struct core *core, const struct allocation *allocation, struct job_event *event)
{
    const struct cluster *cluster = sched_cluster(core->sched);
    for (size_t i = 0; allocation->n_nodes > 1 && i < allocation->n_nodes; i++) {
        const char *name = cluster->nodes[allocation->nodes[i].node].name;
        job_nodes_add(&event->nodes, name, core_find_node(core, name)->hello.boot_id);
    }
}

void core_allocate(
    struct core *core, struct core_entry *entry, const struct allocation *allocation, bool is_early)
{
    const struct cluster *cluster = sched_cluster(core->sched);
    const struct alloc_node *first = &allocation->nodes[0];
    const char *name = cluster->nodes[first->node].name;
    const struct core_node *where = core_find_node(core, name);
    _cleanup_(job_event_clear) struct job_event event = {
        .type = EVENT_ALLOCATED,
        .attempt = entry->job->attempt + 1,
        .token = core_next_token(core, entry),
        .node = xstrdup(name),
        .boot_id = xstrdup(where->hello.boot_id),
        .cpu_milli = first->cpu_milli,
        .memory = first->memory,
        .node_lease_ms = core_node_lease_ms(core, entry->job),
        .is_early = is_early,
    };
    core_write_grants(core, allocation, &event.gpus);
    write_nodes(core, allocation, &event);
    core_change(core, entry, &event, NULL);
}

/* --- reports of nodes about attempts --- */

void core_forget_stated(
    struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token)
{
    struct message_release_attempt forget = { .id = *id, .token = token };
    core_release_attempt(core, node->link, &forget);
    core_hook_over(core, core_find_node(core, node->name), &forget);
}

const struct job *core_job_at(
    const struct core *core, const char *node, const struct spool_id *id, uint64_t token)
{
    const struct core_node *known = core_find_node(core, node);
    const struct core_entry *entry =
        known != NULL && id->step == 0 ? core_find_current(core, known, id, token) : NULL;
    return entry != NULL ? entry->job : NULL;
}

bool core_may_be_over(const struct core *core, const struct core_entry *entry, const struct core_node *node)
{
    return core_is_held(node) && !core_extra(entry)->is_allocated_here;
}

struct core_entry *core_find_current(
    const struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token)
{
    struct core_entry *entry = core_find(core, id->job);
    bool is_current = entry != NULL && entry->job->token == token && entry->job->attempt == id->attempt &&
                      job_state_is_active(entry->job->state) &&
                      job_is_rank_on(entry->job, id->rank, node->name);
    return is_current ? entry : NULL;
}

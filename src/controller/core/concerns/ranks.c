/* SPDX-License-Identifier: MIT */
/*
 * All or nothing. Each node prepares its part up to the gate; when all are ready they are let go, and not
 * before:
 *
 *   unheard ──LAUNCH──> asked ──READY──> ready ──GO, when all are──> released ──STARTED──> started
 *                         │                │                            │                    │
 *                         v                v                            v                    v
 *                     returned         returned                 ended, returned, lost    ended, lost
 *
 * That a part has started proves that all were ready: so a controller that starts anew, and finds one that
 * runs, lets the others go. The job runs from the start of rank 0 on. The first part that is over in any
 * other way than with exit status 0 has the others stopped, and the attempt is over when all are: with the
 * end of that first one, or back in the queue when none of them ever ran. Nobody's exit record is forgotten
 * before, so that what was heard can be heard again.
 *
 * Where the parts meet is decided on the node of rank 0: the others are let go with the port that it says.
 */
#include "controller/core/concerns/ranks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/marks.h"
#include "controller/core/node_table.h"
#include "controller/core/send.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/slurm.h"
#include "job/usage_merge.h"
#include "wire/json_parts.h"

#define NO_RECORD "its node has no record of it any more"

static const char *const state_names[PART_STATES] = {
    [PART_UNHEARD] = "starting",
    [PART_ASKED] = "starting",
    [PART_READY] = "ready",
    [PART_RELEASED] = "starting",
    [PART_STARTED] = "running",
    [PART_RETURNED] = "returned",
    [PART_ENDED] = "done",
    [PART_LOST] = "lost",
};

static void part_clear(struct core_part *part)
{
    free(part->log_path);
    free(part->text);
    record_clear(&launch_exit_record, &part->exit);
    job_usage_free(part->usage);
}

static void drop(struct core_entry *entry)
{
    struct core_parts *parts = core_extra(entry)->parts;
    if (parts == NULL)
        return;
    for (size_t i = 0; i < parts->count; i++)
        part_clear(&parts->items[i]);
    free(parts);
    core_make_extra(entry)->parts = NULL;
}

/* Those of its present attempt, made when there are none yet; NULL when the attempt has one node. Those of
 * an attempt that was there at a start of the controller are made by on_resume(). */
static struct core_parts *take_parts(struct core_entry *entry)
{
    const struct job *job = entry->job;
    if (!job_is_wide(job) || !job_state_is_active(job->state))
        return NULL;
    struct core_parts *parts = core_extra(entry)->parts;
    if (parts != NULL && parts->token == job->token)
        return parts;
    drop(entry);
    size_t count = job_node_count(job);
    parts = xcalloc(1, sizeof(struct core_parts) + count * sizeof(struct core_part));
    parts->token = job->token;
    parts->count = count;
    core_make_extra(entry)->parts = parts;
    return parts;
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    struct core_parts *parts = take_parts(entry);
    if (parts != NULL)
        parts->may_have_gone = true;
}

/* --- what follows from what is known --- */

static bool is_over(const struct core_part *part)
{
    return part->state >= PART_RETURNED;
}

static bool has_failed(const struct core_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (is_over(&parts->items[i]) && !core_part_has_ended_well(&parts->items[i]))
            return true;
    return false;
}

/* The others of a batch script are there for its steps. */
static bool is_led_to_end(const struct core_entry *entry)
{
    return slurm_is_batch(&entry->job->ask->slurm) &&
           core_part_has_ended_well(&core_extra(entry)->parts->items[0]);
}

static bool may_go(const struct core_entry *entry)
{
    const struct core_parts *parts = core_extra(entry)->parts;
    bool are_all_ready = true;
    for (size_t i = 0; i < parts->count; i++) {
        if (core_part_has_run(&parts->items[i]))
            return true;
        are_all_ready = are_all_ready && parts->items[i].state >= PART_READY;
    }
    return are_all_ready || entry->job->started_ms != 0;
}

/* After a start of ours rank 0 may run while its node has not spoken yet. */
static bool is_port_known(const struct core_parts *parts)
{
    return parts->items[0].state >= PART_READY;
}

/* --- what is said to a node --- */

static void say_go(struct core *core, struct core_entry *entry, uint32_t rank, uint32_t link)
{
    const struct job *job = entry->job;
    struct core_parts *parts = core_extra(entry)->parts;
    struct message_go go = {
        .id = core_attempt_id(job, rank), .token = job->token, .port = parts->items[0].port
    };
    core->effects.send(core->effects.arg, link, &message_go_record, &go);
    parts->may_have_gone = true;
}

static void act_on_part(
    struct core *core, struct core_entry *entry, uint32_t rank, bool must_stop, bool is_released)
{
    struct core_part *part = &core_extra(entry)->parts->items[rank];
    const struct job *job = entry->job;
    const struct core_node *node = core_find_node(core, job_node_name(job, rank));
    if (is_over(part) || node == NULL || !node->is_up)
        return;
    if (must_stop) {
        core_send_stop(core, entry, rank, node->link);
    } else if (part->state == PART_UNHEARD) {
        if (core_send_launch(core, entry, rank, node->link))
            part->state = PART_ASKED;
    } else if (part->state == PART_READY && is_released) {
        say_go(core, entry, rank, node->link);
        part->state = PART_RELEASED;
    } else if (job_run(job)->terms > 0 && part->state >= PART_RELEASED) {
        core_send_update(core, job, rank, node->link);
    }
}

static bool are_all_started(const struct core_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].state < PART_STARTED)
            return false;
    return true;
}

static bool is_untouched(const struct core_parts *parts)
{
    bool is_unheard = !parts->may_have_gone;
    for (size_t i = 0; i < parts->count; i++)
        is_unheard = is_unheard && parts->items[i].state == PART_UNHEARD;
    return is_unheard;
}

static void act(struct core *core, struct core_entry *entry)
{
    struct core_parts *parts = take_parts(entry);
    const char *node = NULL;
    if (parts == NULL || entry->changed_in > core->durable_batch)
        return; // what was changed is acted upon when it is durable
    if (entry->job->state == JOB_STARTING && is_untouched(parts) && !core_can_meet(core, entry->job, &node)) {
        _cleanup_free_ char *text = xasprintf(
            "the other nodes cannot reach node %s: it connected to a loopback address, for example through a "
            "tunnel; start its mgpu-agent with --controller and an address of this machine",
            node);
        core_end_attempt(core, entry, END_START_FAILED, text);
        return;
    }
    bool must_stop = entry->job->state == JOB_STOPPING || has_failed(parts) || is_led_to_end(entry);
    bool is_released = !must_stop && may_go(entry);
    for (uint32_t rank = 0; rank < parts->count; rank++)
        act_on_part(core, entry, rank, must_stop, is_released && (rank == 0 || is_port_known(parts)));
    if (are_all_started(parts))
        core_drop_spec(core, core_extra(entry)->array != NULL ? core_extra(entry)->array : entry);
}

/* --- the end of a part --- */

/* When the node of a lost part spoke last before it was away. */
static int64_t last_word_ms(const struct core *core, const struct core_entry *entry, uint32_t rank)
{
    const struct core_node *node = core_find_node(core, job_node_name(entry->job, rank));
    const struct core_part *part = &core_extra(entry)->parts->items[rank];
    if (part->left_ms != 0 || node == NULL)
        return part->left_ms;
    return node->is_up ? node->left_ms : node->heard_ms;
}

/* Why the others are stopped. After a start of ours one that was stopped may be heard of before its cause. */
static bool has_cause(const struct core_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct core_part *part = &parts->items[i];
        bool was_stopped = part->state == PART_ENDED && part->exit.end == END_CANCELLED;
        if (is_over(part) && !was_stopped && !core_part_has_ended_well(part))
            return true;
    }
    return false;
}

/* A part is over, and with it perhaps the attempt. */
static void settle(struct core *core, struct core_entry *entry, struct core_part *part, enum part_state state)
{
    struct core_parts *parts = core_extra(entry)->parts;
    part->is_in_stop = entry->job->state == JOB_STOPPING || has_cause(parts);
    part->state = state;
    part->order = ++parts->n_over;
    part->word_ms =
        core_part_is_loss(part) ? last_word_ms(core, entry, (uint32_t)(part - parts->items)) : core->boot_ms;
    for (size_t i = 0; i < parts->count; i++)
        if (!is_over(&parts->items[i])) {
            core_act_later(core, entry); // a fence that ended it may not be durable yet
            return;
        }
    core_parts_end(core, entry);
    drop(entry);
}

/* --- what nodes say --- */

static struct core_part *find_open(struct core_entry *entry, uint32_t rank)
{
    struct core_parts *parts = take_parts(entry);
    return parts != NULL && rank < parts->count && !is_over(&parts->items[rank]) ? &parts->items[rank] : NULL;
}

static void note_ready(
    struct core *core, struct core_entry *entry, uint32_t rank, const struct message_ready *ready)
{
    struct core_part *part = find_open(entry, rank);
    if (part == NULL || part->state == PART_STARTED)
        return;
    part->state = PART_READY;
    part->port = ready->port;
    if (may_go(entry))
        act(core, entry);
}

/* The job runs when its first part does, or has run. */
static void note_start(struct core *core, struct core_entry *entry, const char *log_path, const char *text)
{
    const struct job *job = entry->job;
    if (job->started_ms != 0 || (job->state != JOB_STARTING && job->state != JOB_STOPPING))
        return;
    struct job_event event = {
        .type = EVENT_STARTED, .attempt = job->attempt, .log_path = xstrdup(log_path), .text = xstrdup(text)
    };
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
}

static void note_started(
    struct core *core, struct core_entry *entry, uint32_t rank, const struct launch_started *started)
{
    struct core_part *part = find_open(entry, rank);
    if (part == NULL || part->state == PART_STARTED)
        return;
    part->state = PART_STARTED;
    part->port = started->port;
    free(part->log_path);
    part->log_path = xstrdup(started->log_path);
    if (rank == 0)
        note_start(core, entry, part->log_path, started->text);
    act(core, entry);
}

static void note_return(struct core *core, struct core_entry *entry, uint32_t rank, const char *text)
{
    struct core_part *part = find_open(entry, rank);
    if (part == NULL)
        return;
    free(part->text);
    part->text = xstrdup(text);
    settle(core, entry, part, PART_RETURNED);
}

static void note_exit(
    struct core *core, struct core_entry *entry, uint32_t rank, const struct launch_exit *record)
{
    struct core_part *part = find_open(entry, rank);
    if (part == NULL)
        return;
    record_clear(&launch_exit_record, &part->exit);
    if (record->is_executed == 0 && record->end == END_UNKNOWN) {
        note_return(core, entry, rank, record->text);
        return;
    }
    record_copy(&launch_exit_record, &part->exit, record);
    if (record->log_path != NULL) {
        free(part->log_path);
        part->log_path = xstrdup(record->log_path);
    }
    if (rank == 0 && record->is_executed != 0 && record->end == END_EXIT && record->exit_code == 0)
        note_start(core, entry, part->log_path, NULL);
    settle(core, entry, part, PART_ENDED);
}

static void lose(
    struct core *core, struct core_entry *entry, uint32_t rank, enum job_end end, const char *text)
{
    struct core_part *part = find_open(entry, rank);
    if (part == NULL)
        return;
    free(part->text);
    part->text = xstrdup(text);
    part->end = end;
    settle(core, entry, part, PART_LOST);
}

static bool has_started(struct core_entry *entry, uint32_t rank)
{
    const struct core_part *part = find_open(entry, rank);
    return part != NULL && part->state == PART_STARTED;
}

static bool is_lost(struct core_entry *entry, uint32_t rank)
{
    const struct core_parts *parts = take_parts(entry);
    return parts != NULL && rank < parts->count && parts->items[rank].state == PART_LOST;
}

static void on_usage(struct core *core, struct core_entry *entry, const struct attempt_usage *usage)
{
    struct core_part *part = find_open(entry, usage->id.task);
    if (part == NULL)
        return;
    job_usage_free(part->usage);
    part->usage = job_usage_copy(usage->usage.items);
    struct core_parts *parts = core_extra(entry)->parts;
    struct usage_part *each = xcalloc(parts->count, sizeof(*each));
    for (size_t i = 0; i < parts->count; i++)
        each[i] = (struct usage_part){ parts->items[i].usage, job_node_gpus(entry->job, i) };
    job_usage_free(core_extra(entry)->usage);
    core_make_extra(entry)->usage = job_usage_merge(each, parts->count);
    free(each);
}

/* --- links --- */

static const struct known_attempt *find_listed(
    const struct message_hello *hello, const struct job *job, uint32_t rank)
{
    const struct known_attempt *attempts = hello->attempts.items;
    for (size_t i = 0; i < hello->attempts.count; i++)
        if (attempts[i].id.job == job->id && attempts[i].token == job->token && attempts[i].id.task == rank)
            return &attempts[i];
    return NULL;
}

static void reconcile(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    if (!job_is_wide(entry->job))
        return;
    struct job *job = entry->job;
    uint32_t rank = (uint32_t)job_rank_on(job, node->name);
    struct core_part *part = find_open(entry, rank);
    const struct known_attempt *known = find_listed(&node->hello, job, rank);
    if (part == NULL)
        return;
    if (known != NULL && known->phase == PHASE_EXITED && part->left_ms == 0)
        part->left_ms = node->left_ms;
    const char *boot = job_node_boot(job, rank);
    bool is_same_spool = text_equal(boot, node->hello.boot_id);
    if (known == NULL && !core_is_same_boot(boot, node->hello.boot_id)) {
        lose(core, entry, rank, END_REBOOT, "its node rebooted while it ran");
        return;
    }
    if (known == NULL &&
        (part->state == PART_STARTED || job->started_ms != 0 || !is_same_spool || core_is_held(core, node))) {
        lose(core, entry, rank, END_UNKNOWN, NO_RECORD);
        return;
    }
    if (part->state != PART_STARTED)
        part->state = known == NULL || known->phase == PHASE_STAGED ? PART_UNHEARD : PART_ASKED;
    act(core, entry);
}

static void on_down(struct core *core, struct core_node *node)
{
    for (struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        int rank = job_is_wide(entry->job) ? job_rank_on(entry->job, node->name) : -1;
        struct core_part *part = rank >= 0 ? find_open(entry, (uint32_t)rank) : NULL;
        if (part != NULL && part->state < PART_STARTED)
            part->state = PART_UNHEARD;
    }
}

/* --- messages --- */

/* Is this the part of a present attempt on several nodes that this node has? */
static bool is_part(
    const struct core_entry *entry, const struct core_node *node, uint32_t task, uint64_t token)
{
    return entry != NULL && job_is_wide(entry->job) && job_state_is_active(entry->job->state) &&
           entry->job->token == token && (int)task == job_rank_on(entry->job, node->name);
}

static void on_ready(struct core *core, struct core_node *node, const void *message)
{
    const struct message_ready *ready = message;
    struct core_entry *entry = core_find(core, ready->id.job);
    if (is_part(entry, node, ready->id.task, ready->token))
        note_ready(core, entry, ready->id.task, ready);
}

static void on_started(struct core *core, struct core_node *node, const void *message)
{
    const struct launch_started *started = message;
    struct core_entry *entry = core_find(core, started->id.job);
    if (is_part(entry, node, started->id.task, started->token))
        note_started(core, entry, started->id.task, started);
}

/* Its exit is forgotten with the others', but that of a part which was given up, at once. */
static void on_exited(struct core *core, struct core_node *node, const void *message)
{
    const struct launch_exit *record = message;
    struct core_entry *entry = core_find_current(core, node, &record->id, record->token);
    if (entry == NULL || !job_is_wide(entry->job))
        return;
    if (is_lost(entry, record->id.task))
        core_forget_stated(core, node, &record->id, record->token);
    else
        note_exit(core, entry, record->id.task, record);
}

static void on_returned(struct core *core, struct core_node *node, const void *message)
{
    const struct message_returned *returned = message;
    struct core_entry *entry = core_find_current(core, node, &returned->id, returned->token);
    if (entry == NULL || !job_is_wide(entry->job))
        return;
    if (!has_started(entry, returned->id.task) && !is_lost(entry, returned->id.task)) {
        note_return(core, entry, returned->id.task, returned->text);
        return; // it is forgotten with the others
    }
    /* What has started cannot have been returned: its agent has lost what it knew of it. */
    if (has_started(entry, returned->id.task))
        lose(core, entry, returned->id.task, END_UNKNOWN, NO_RECORD);
    core_forget_stated(core, node, &returned->id, returned->token);
}

static void on_gone(struct core *core, struct core_entry *entry)
{
    drop(entry);
}

/* --- reading --- */

static const struct core_parts *find_parts(const struct core *core, uint64_t job)
{
    const struct core_entry *entry = core_find(core, job);
    bool is_present = entry != NULL && core_extra(entry)->parts != NULL &&
                      core_extra(entry)->parts->token == entry->job->token;
    return is_present && job_is_wide(entry->job) ? core_extra(entry)->parts : NULL;
}

struct json_part *core_parts_look(const struct core *core, uint64_t job)
{
    const struct core_parts *parts = find_parts(core, job);
    if (parts == NULL)
        return NULL;
    struct json_part *looks = xcalloc(parts->count, sizeof(*looks));
    for (size_t i = 0; i < parts->count; i++) {
        const struct core_part *part = &parts->items[i];
        looks[i] = (struct json_part){
            .state = state_names[part->state],
            .log_path = part->log_path,
            .has_exit = part->state == PART_ENDED,
            .end = (enum job_end)part->exit.end,
            .exit_code = part->exit.exit_code,
        };
    }
    return looks;
}

char *core_log_path(const struct core *core, const struct job *job, uint32_t rank)
{
    const struct core_parts *parts = find_parts(core, job->id);
    const struct job_node *node = job_node(job, rank);
    if (rank == 0)
        return job_run(job)->log_path;
    if (parts != NULL)
        return rank < parts->count ? parts->items[rank].log_path : NULL;
    return node != NULL ? node->log_path : NULL;
}

static const struct core_message messages[] = {
    { MESSAGE_READY, on_ready },
    { MESSAGE_STARTED, on_started },
    { MESSAGE_EXITED, on_exited },
    { MESSAGE_RETURNED, on_returned },
    { 0 },
};

const struct core_concern core_concern_ranks = {
    .name = "parts",
    .resume = on_resume,
    .act = act,
    .gone = on_gone,
    .usage = on_usage,
    .reconcile = reconcile,
    .lost = lose,
    .is_lost = is_lost,
    .messages = messages,
    .down = on_down,
};

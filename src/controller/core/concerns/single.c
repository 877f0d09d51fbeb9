/* SPDX-License-Identifier: MIT */
/*
 * Attempts on one node. Sends the agent what the job's durable state requires: LAUNCH for starting, STOP for
 * stopping, UPDATE for running if the settings differ from those of its LAUNCH. Messages may be lost with
 * their link; after the next HELLO the same function resends them, and agents handle duplicates.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/refusal.h"
#include "controller/core/send.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

static void act(struct core *core, struct core_entry *entry)
{
    const struct job *job = entry->job;
    if (!job_state_is_active(job->state) || entry->changed_in > core->durable_batch)
        return;
    if (job_is_wide(job))
        return;
    const struct core_node *node = core_find_node(core, job->node);
    if (node == NULL || !node->is_up)
        return;
    if (job->state == JOB_STARTING)
        (void)core_send_launch(core, entry, 0, node->link, NULL);
    else if (job->state == JOB_STOPPING)
        core_send_stop(core, entry, 0, node->link, NULL);
    else if (job_run(job)->terms > 0)
        core_send_update(core, job, 0, node->link, NULL);
    else if (core_extra(entry)->array == NULL || !core_has_room_for_specs(core))
        core_drop_spec(core, core_spec_owner(entry));
}

static void reconcile(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    if (job_is_wide(entry->job))
        return;
    const struct message_hello *hello = &node->hello;
    const struct job *job = entry->job;
    bool is_same_spool = text_equal(job_run(job)->boot_id, hello->boot_id);
    bool has_started = job->state == JOB_RUNNING || job->started_ms != 0;
    bool is_gone = core_find_known(node, job, 0) == NULL;
    if (is_gone && !core_is_same_boot(job_run(job)->boot_id, hello->boot_id))
        core_end_attempt(core, entry, END_REBOOT, "its node rebooted while it ran");
    else if (is_gone && (has_started || !is_same_spool || core_may_be_over(core, entry, node)))
        core_end_attempt(core, entry, END_UNKNOWN, NO_RECORD);
    else
        act(core, entry);
}

/* The part that is added to the job's record: resource usage, and the last lines of output. */
static void take_usage(const struct launch_exit *record, struct record_list *ret)
{
    if (record->usage.count == 0 && record->tail == NULL)
        return;
    struct job_usage *usage =
        record->usage.count > 0 ? job_usage_copy(record->usage.items) : xcalloc(1, sizeof(struct job_usage));
    if (record->tail != NULL) {
        free(usage->tail);
        usage->tail = xstrdup(record->tail);
    }
    *ret = (struct record_list){ usage, 1 };
}

static void on_started(struct core *core, struct core_node *node, const void *message)
{
    const struct launch_started *started = message;
    struct core_entry *entry = core_find(core, started->id.job);
    /* A start need not be acknowledged, because the report of its end includes it. */
    if (entry != NULL && !job_is_wide(entry->job) && entry->job->token == started->token)
        core_begin_attempt(core, entry, started->log_path, started->text);
}

/* The job, if this is the current attempt of a job on one node. The agent is told to release any other
 * attempt. */
static struct core_entry *find_or_forget(
    struct core *core, const struct core_node *node, const struct spool_id *id, uint64_t token)
{
    struct core_entry *entry = core_find_current(core, node, id, token);
    if (entry == NULL && id->job <= core->last_job)
        core_forget_stated(core, node, id, token);
    return entry != NULL && !job_is_wide(entry->job) ? entry : NULL;
}

static void on_exited(struct core *core, struct core_node *node, const void *message)
{
    const struct launch_exit *record = message;
    struct core_entry *entry = find_or_forget(core, node, &record->id, record->token);
    if (entry == NULL)
        return;
    if (record->is_executed != 0)
        core_begin_attempt(core, entry, record->log_path, NULL);
    if (record->is_executed != 0 ||
        !core_start_failed(core, entry, node->name, core_start_class(record), record->cause, record->text)) {
        struct job_event event = {
            .attempt = record->id.attempt,
            .end = record->end > END_NONE && record->end < END_KINDS ? record->end : END_UNKNOWN,
            .exit_code = record->exit_code,
            .signal = record->signal,
            .started_wall_ms = record->started_wall_ms,
            .run_ms = record->run_ms,
            .cpu_ms = record->cpu_ms,
            .max_rss = record->max_rss,
            .log_bytes = record->log_bytes,
            .log_path = record->log_path,
            .text = record->text,
            .signals = record->signals,
        };
        take_usage(record, &event.usage);
        core_close_attempt(core, entry, &event);
        job_usage_free(event.usage.items);
    }
    core_forget_stated(core, node, &record->id, record->token);
}

static void on_returned(struct core *core, struct core_node *node, const void *message)
{
    const struct message_returned *returned = message;
    struct core_entry *entry = find_or_forget(core, node, &returned->id, returned->token);
    if (entry == NULL)
        return;
    /* An attempt that has started cannot have been returned: its agent has lost its state. */
    if (entry->job->started_ms != 0)
        core_end_attempt(core, entry, END_UNKNOWN, NO_RECORD);
    else if (core_extra(entry)->recalled == entry->job->token && entry->job->state == JOB_STARTING)
        core_give_back_recalled(core, entry, returned->text);
    else
        (void)core_start_failed(core, entry, node->name, START_WAITS, returned->cause, returned->text);
    core_forget_stated(core, node, &returned->id, returned->token);
}

static void on_lost(
    struct core *core, struct core_entry *entry, uint32_t rank, enum job_end end, const char *text)
{
    if (!job_is_wide(entry->job))
        core_end_attempt(core, entry, end, text);
}

static const struct core_message messages[] = {
    { MESSAGE_STARTED, on_started },
    { MESSAGE_EXITED, on_exited },
    { MESSAGE_RETURNED, on_returned },
    { 0 },
};

const struct core_concern core_concern_single = {
    .name = "single",
    .act = act,
    .reconcile = reconcile,
    .lost = on_lost,
    .messages = messages,
};

/* SPDX-License-Identifier: MIT */
/* Slow starts and stops: until when a job that is being stopped may save its work, and which are overdue. */
#include <stdio.h>

#include "base/parse.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"

#define START_EXPECTED_MS 30000 // from the LAUNCH to STARTED or READY
#define KILL_EXPECTED_MS  5000  // from SIGKILL to the end

/* A stop may be followed by another one; the one that ends first counts. */
static void note_stop(struct core *core, struct core_entry *entry)
{
    int64_t ends_ms = core->now_ms + core_stop_grace_ms(core, entry->job);
    const struct core_extra *extra = core_extra(entry);
    bool is_known = extra->stop.token == entry->job->token && extra->stop.ends_ms <= ends_ms;
    if (entry->job->state != JOB_STOPPING || is_known)
        return;
    core_make_extra(entry)->stop.token = entry->job->token;
    core_make_extra(entry)->stop.ends_ms = ends_ms;
}

int64_t core_checkpoint_until(const struct core_entry *entry)
{
    return core_is_checkpointing(entry->job) ? core_extra(entry)->stop.ends_ms : 0;
}

const char *core_delay(
    const struct core *core, int64_t wall_ms, const struct core_entry *entry, char *text, size_t size)
{
    const struct job *job = entry->job;
    const struct core_extra *extra = core_extra(entry);
    const struct core_node *node = job->node != NULL ? core_find_node(core, job->node) : NULL;
    bool is_starting = job->state == JOB_STARTING;
    char span[32];
    if (!is_starting && job->state != JOB_STOPPING)
        return NULL;
    int64_t since_ms = is_starting ? extra->active_ms : extra->stop.ends_ms;
    int64_t late_ms = since_ms != 0 ? core_now_ms(core, wall_ms) - since_ms : 0;
    if (late_ms < (is_starting ? START_EXPECTED_MS : KILL_EXPECTED_MS))
        return NULL;
    format_duration(late_ms, span, sizeof(span));
    if (node == NULL || !node->is_up)
        (void)snprintf(text, size, "node %s is not connected", job->node);
    else if (is_starting)
        (void)snprintf(text, size, "node %s has not started it for %s; see the log of mgpu-agent there",
            job->node, span);
    else
        (void)snprintf(text, size,
            "killed %s ago, but a process on node %s has not ended: it is blocked in the kernel, for example "
            "by a disk or a driver",
            span, job->node);
    return text;
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    note_stop(core, entry);
}

const struct core_concern core_concern_delays = {
    .name = "delays",
    .resume = note_stop,
    .events = CORE_ON_STOPPING,
    .event = on_event,
};

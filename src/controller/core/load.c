/* SPDX-License-Identifier: MIT */
/* Loading: restores the state of the previous run from the rows of the store. Makes no decisions. */
#include <errno.h>
#include <string.h>

#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/marks.h"
#include "controller/core/node_view.h"
#include "controller/core/owners.h"
#include "controller/core/settings.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

void core_load_summary(struct core *core, const struct store_summary *summary)
{
    core->epoch = summary->epoch;
    core->last_order = summary->epoch << 32;
    core->last_job = summary->last_job;
    core->last_event = summary->last_event;
    core->last_durable_event = summary->last_event;
    core->first_event = summary->last_event;
    core->is_store_old = summary->is_old_copy;
}

static int load_mark(struct core *core, const struct cluster_change *change, struct error *err)
{
    if (change->node == NULL)
        return error_set(err, -EBADMSG, "it contains no node name");
    core_set_mark(core, change);
    return 0;
}

static int check_gpu(const struct cluster_change *change, struct error *err)
{
    bool is_named = change->node != NULL && change->uuid != NULL;
    return is_named ? 0 : error_set(err, -EBADMSG, "it contains no node name, or no uuid of a GPU");
}

static int load_policy(struct core *core, const struct cluster_change *change, struct error *err)
{
    int r = check_gpu(change, err);
    if (r == 0)
        (void)core_keep_policy(core, change);
    return r;
}

static int load_size(struct core *core, const struct cluster_change *change, struct error *err)
{
    const struct cluster_device *devices = change->devices.items;
    if (change->node == NULL)
        return error_set(err, -EBADMSG, "it contains no node name");
    for (size_t i = 0; i < change->devices.count; i++)
        if (devices[i].uuid == NULL)
            return error_set(err, -EBADMSG, "device %zu of node %.60s has no uuid", i, change->node);
    core_keep_size(core, change);
    return 0;
}

static int load_fault(struct core *core, const struct cluster_change *change, struct error *err)
{
    int r = check_gpu(change, err);
    if (r == 0)
        core_keep_fault(core, change);
    return r;
}

static int load_change(struct core *core, const uint8_t *bytes, size_t length,
    int (*take)(struct core *core, const struct cluster_change *change, struct error *err), struct error *err)
{
    _cleanup_(cluster_change_clear) struct cluster_change change;
    int r = record_decode(&cluster_change_record, bytes, length, &change, err);
    if (r == 0)
        r = take(core, &change, err);
    return r;
}

int core_load_state(struct core *core, const char *kind, const char *key, const uint8_t *bytes, size_t length,
    struct error *err)
{
    const struct core_kind *known = core_find_kind(core, kind);
    int r = 0;
    if (strcmp(kind, "gpu") == 0 || strcmp(kind, "node") == 0)
        r = load_change(core, bytes, length, load_mark, err);
    else if (strcmp(kind, "gpu-policy") == 0)
        r = load_change(core, bytes, length, load_policy, err);
    else if (strcmp(kind, "gpu-fault") == 0)
        r = load_change(core, bytes, length, load_fault, err);
    else if (strcmp(kind, CORE_NODE_SIZE) == 0)
        r = load_change(core, bytes, length, load_size, err);
    else if (strcmp(kind, CORE_OWNER) == 0)
        core_load_owners(core, key, bytes, length);
    else if (strcmp(kind, "clock") == 0)
        core_clock_load(core, bytes, length);
    else if (known != NULL && known->load != NULL)
        r = known->load(core, key, bytes, length, err);
    else if (known != NULL)
        r = load_change(core, bytes, length, known->load_change, err);
    return r < 0 ? error_wrap(err, "stored usage of %s %s", kind, key) : 0;
}

void core_load_job(struct core *core, struct job *job)
{
    const int64_t times[] = { job->submitted_ms, job->queued_ms, job->ended_ms,
        job->state != JOB_DONE ? job->started_ms : 0 }; // in older stores, later times there are the node's
    struct core_entry *entry = job_table_add(&core->jobs, job);
    ask_cache_share(&core->asks, &job->ask);
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        core->last_ms = times[i] > core->last_ms ? times[i] : core->last_ms;
    if (job->state == JOB_DONE)
        core_note_done(core, entry);
    if (job_state_is_active(job->state))
        core_activate(core, entry);
    core_hook_load(core, entry);
}

void core_load_key(struct core *core, uint64_t key_hash, uint64_t job, uint64_t spec_hash)
{
    key_table_add(&core->keys, key_hash, job, spec_hash);
}

int64_t core_newest_ms(const struct core *core)
{
    return core->last_ms;
}

/* Not core_begin(): timers that expired while mgpud was not running are due now, not at their own times. */
static void set_clock(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    core->boot_ms = boot_ms;
    core->began_ms = wall_ms;
    int64_t now_ms = core_clock_read(core, boot_ms, wall_ms);
    core->now_ms = now_ms > core->last_ms ? now_ms : core->last_ms + 1;
}

void core_load_end_for_reading(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    set_clock(core, boot_ms, wall_ms);
    core_batch_free(take_ptr(core->open));
}

void core_load_end(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    set_clock(core, boot_ms, wall_ms);
    core_clock_keep(core);
    for (struct core_entry *entry = core->jobs.first; entry != NULL; entry = entry->after) {
        core_hook_resume(core, entry);
    }
    core_note_settings(core, false);
    core_hook_begin(core);
}

void core_on_end(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct core_fact *fact)
{
    core_begin(core, boot_ms, wall_ms);
    if (fact->began_ms != 0)
        sched_began(core->sched, core->now_ms, fact->job, fact->began_ms);
    sched_resolve_dependents(core->sched, core->now_ms, fact->job, fact->is_ok);
}

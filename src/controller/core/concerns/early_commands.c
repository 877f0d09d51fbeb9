/* SPDX-License-Identifier: MIT */
/*
 * A row of the store for each user and command (core_command_hash()), with the latest times from the start of
 * a job to its first use of a GPU. Of a job that started as usual its node's samples say it (struct
 * job_usage, first_use_ms); of one that started early the process that waited for a GPU does (struct
 * job_park, saved_ms). A time that was not measured has no row.
 *
 * A program may be one that cannot start without its GPUs, whatever it does before it opens one: if a job
 * that had not asked fails before it has them, its command starts as usual from then on, until a job of it
 * that was submitted with --early gets as far as its GPUs.
 */
#include "controller/core/concerns/early_commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/batch.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "job/usage.h"

#define COMMANDS_MAX 4096U // the one that was learnt from first is forgotten
#define RUNS         3U

struct command {
    uint32_t uid;
    uint64_t command_hash;
    uint64_t runs_ms[RUNS]; // the latest one first; 0: not so many yet
    uint32_t has_failed;    // 1: before it had GPUs, when it was started early without having asked
    uint64_t number;        // increases with each row that is written
};

struct core_early_commands {
    struct command *items;
    size_t count, n_late; // of these, whose jobs start early
    uint64_t last_number;
};

static const struct record_field command_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct command, uid, 0),
    RECORD_FIELD(2, RECORD_U64, struct command, command_hash, 0),
    RECORD_FIELD(3, RECORD_U64, struct command, runs_ms[0], 0),
    RECORD_FIELD(4, RECORD_U64, struct command, runs_ms[1], 0),
    RECORD_FIELD(5, RECORD_U64, struct command, runs_ms[2], 0),
    RECORD_FIELD(6, RECORD_U32, struct command, has_failed, 0),
    RECORD_FIELD(7, RECORD_U64, struct command, number, 0),
};

_Static_assert(RUNS == 3, "a field for each run");

static const struct record_type command_record =
    RECORD_TYPE(543, "first use of GPUs by a command", struct command, command_fields);

/* --- what is known --- */

static struct command *find(const struct core *core, uint32_t uid, uint64_t command_hash)
{
    struct core_early_commands *commands = core->early_commands;
    for (size_t i = 0; i < commands->count; i++)
        if (commands->items[i].command_hash == command_hash && commands->items[i].uid == uid)
            return &commands->items[i];
    return NULL;
}

static struct command *find_of(const struct core *core, const struct job *job)
{
    return core->early_commands->count > 0 ? find(core, job->uid, core_command_hash(job)) : NULL;
}

/* The shortest of the latest runs; 0: none is known. */
static uint64_t least_ms(const struct command *command, unsigned *ret_runs)
{
    uint64_t least = 0;
    unsigned runs = 0;
    for (size_t i = 0; i < RUNS; i++) {
        uint64_t ms = command->runs_ms[i];
        runs += ms != 0;
        least = ms != 0 && (least == 0 || ms < least) ? ms : least;
    }
    *ret_runs = runs;
    return least;
}

static bool is_late(const struct command *command)
{
    unsigned runs;
    return command->has_failed == 0 && least_ms(command, &runs) > EARLY_WORTH_MS;
}

bool early_commands_has_late(const struct core *core)
{
    return core->early_commands->n_late > 0;
}

bool early_commands_is_late(const struct core *core, const struct job *job)
{
    const struct command *command = find_of(core, job);
    return command != NULL && is_late(command);
}

/* Of a job that did not ask, where `early: auto` is set. */
static char *explain(const struct command *command)
{
    char span[32];
    unsigned runs;
    uint64_t least = least_ms(command, &runs);
    if (command->has_failed != 0)
        return xstrdup("no, when this command was started early, it failed before it had its GPUs");
    if (least == 0)
        return NULL;
    format_duration((int64_t)least, span, sizeof(span));
    if (least <= EARLY_WORTH_MS)
        return xasprintf("no, this command has used a GPU within %s of its start", span);
    return runs == 1
               ? xasprintf("yes, the latest run of this command took %s to its first use of a GPU", span)
               : xasprintf("yes, the latest runs of this command took %s or more to their first use of a GPU",
                     span);
}

/* What starts as usual whatever was asked (sched_early.c), in the plural; NULL: it is none of these. */
static const char *kind_without(const struct job *job)
{
    const struct job_ask *ask = job->ask;
    if (job_is_array(job))
        return "the elements of arrays";
    if (ask->nodes > 1)
        return "jobs on several nodes";
    if (ask->gpu_ids != NULL)
        return "jobs that name their GPUs (-G)";
    if (ask->gpu_share > 0 || ask->gpu_mem > 0)
        return "jobs that may share a GPU";
    return ask->exclusive ? "jobs with exclusive nodes" : NULL;
}

char *core_describe_early(const struct core *core, const struct core_entry *entry)
{
    const struct job *job = entry->job;
    const struct command *command = find_of(core, job);
    bool waits = job->state == JOB_QUEUED && job->ask->gpus > 0;
    if (!waits || job->ask->no_early)
        return NULL;
    if (core->options.early.mode == EARLY_NEVER)
        return job->ask->early ? xstrdup("no, this mgpud starts no job early (early: never)") : NULL;
    if (kind_without(job) != NULL)
        return job->ask->early ? xasprintf("no, %s start as usual", kind_without(job)) : NULL;
    if (core_extra(entry)->returns > 0 && job->ask->early)
        return xstrdup("no, an attempt was given back, and the next one starts as usual");
    if (job->ask->early)
        return xstrdup("yes, it was submitted with --early");
    return core->options.early.mode == EARLY_AUTO && command != NULL ? explain(command) : NULL;
}

/* --- what is learnt --- */

static const char *row_key(const struct command *command, char *key, size_t size)
{
    (void)snprintf(key, size, "%" PRIu32 ".%016" PRIx64, command->uid, command->command_hash);
    return key;
}

static void keep(struct core *core, struct command *command)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[32];
    command->number = ++core->early_commands->last_number;
    record_encode(&command_record, command, &bytes);
    store_batch_put(
        core_batch(core)->changes, EARLY_COMMAND_KIND, row_key(command, key, sizeof(key)), &bytes);
}

static void forget_oldest(struct core *core)
{
    struct core_early_commands *commands = core->early_commands;
    size_t oldest = 0;
    char key[32];
    for (size_t i = 1; i < commands->count; i++)
        if (commands->items[i].number < commands->items[oldest].number)
            oldest = i;
    commands->n_late -= is_late(&commands->items[oldest]);
    store_batch_remove(
        core_batch(core)->changes, EARLY_COMMAND_KIND, row_key(&commands->items[oldest], key, sizeof(key)));
    commands->items[oldest] = commands->items[--commands->count];
}

static struct command *add(struct core_early_commands *commands, const struct command *command)
{
    commands->items = xreallocarray(commands->items, commands->count + 1, sizeof(*commands->items));
    commands->items[commands->count] = *command;
    commands->n_late += is_late(command);
    return &commands->items[commands->count++];
}

static struct command *find_or_add(struct core *core, const struct job *job)
{
    struct command *command = find_of(core, job);
    if (command != NULL)
        return command;
    if (core->early_commands->count == COMMANDS_MAX)
        forget_oldest(core);
    return add(
        core->early_commands, &(struct command){ .uid = job->uid, .command_hash = core_command_hash(job) });
}

static void learn(struct core *core, const struct job *job, uint64_t first_use_ms)
{
    struct command *command = find_or_add(core, job);
    core->early_commands->n_late -= is_late(command);
    for (size_t i = RUNS - 1; i > 0; i--)
        command->runs_ms[i] = command->runs_ms[i - 1];
    command->runs_ms[0] = first_use_ms;
    core->early_commands->n_late += is_late(command);
    keep(core, command);
}

static void set_failed(struct core *core, const struct job *job, bool has_failed)
{
    struct command *command = has_failed ? find_or_add(core, job) : find_of(core, job);
    if (command == NULL || (command->has_failed != 0) == has_failed)
        return;
    core->early_commands->n_late -= is_late(command);
    command->has_failed = has_failed;
    core->early_commands->n_late += is_late(command);
    keep(core, command);
}

/* --- what happens to jobs --- */

void early_commands_note_start(struct core_entry *entry)
{
    bool is_unasked = job_is_early(entry->job) && !entry->job->ask->early;
    if (is_unasked != core_extra(entry)->is_early_unasked)
        core_make_extra(entry)->is_early_unasked = is_unasked;
}

static void note_grant(struct core *core, const struct job *job)
{
    const struct job_park *park = job_park(job);
    if (park->saved_ms < park->early_ms) // at once is a time as well
        learn(core, job, park->saved_ms > 0 ? (uint64_t)park->saved_ms : 1);
    if (job->ask->early)
        set_failed(core, job, false);
}

/* On its own: it was not stopped. */
static bool is_failure(const struct job *job, const struct job_event *event)
{
    return event->type == EVENT_REQUEUED
               ? event->cause == REQUEUE_FAILED
               : job->end == END_SIGNAL || (job->end == END_EXIT && job->exit_code != 0);
}

void early_commands_note(struct core *core, struct core_entry *entry, const struct job_event *event)
{
    const struct job *job = entry->job;
    enum job_event_type type = (enum job_event_type)event->type;
    if (type == EVENT_ALLOCATED) {
        early_commands_note_start(entry);
    } else if (job_early_is_over(job, event)) {
        early_commands_note_start(entry);
        note_grant(core, job);
    } else if (type == EVENT_ENDED || type == EVENT_REQUEUED) {
        struct optional first_use = usage_first_use_ms(job_run(job)->usage);
        if (first_use.is_known)
            learn(core, job, first_use.value);
        if (core_extra(entry)->is_early_unasked && is_failure(job, event))
            set_failed(core, job, true);
        early_commands_note_start(entry);
    }
}

/* Damaged rows are dropped: they are learnt again. */
int early_commands_load(
    struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct core_early_commands *commands = core->early_commands;
    struct command command;
    if (record_decode(&command_record, bytes, length, &command, err) < 0 || commands->count == COMMANDS_MAX ||
        find(core, command.uid, command.command_hash) != NULL)
        return 0;
    (void)add(commands, &command);
    if (command.number > commands->last_number)
        commands->last_number = command.number;
    return 0;
}

void early_commands_init(struct core *core)
{
    core->early_commands = xcalloc(1, sizeof(*core->early_commands));
}

void early_commands_free(struct core *core)
{
    if (core->early_commands != NULL)
        free(core->early_commands->items);
    free(take_ptr(core->early_commands));
}

/* SPDX-License-Identifier: MIT */
/*
 * All ranks start, or none. Each node prepares its rank up to the gate, and only when all are ready they get
 * GO:
 *
 *   unheard ──LAUNCH──> asked ──READY──> ready ──GO, when all are──> released ──STARTED──> started
 *                         │                │                            │                    │
 *                         v                v                            v                    v
 *                     returned         returned                 ended, returned, lost    ended, lost
 *
 * A started rank proves that all were ready: a controller that restarts and finds a running one sends GO to
 * the others. The job runs from the start of rank 0. The first rank that ends without exit status 0 stops the
 * others, and the attempt ends when all have ended. Its result is the end of that first rank; if no rank ever
 * ran, the job is requeued. Exit records are kept until then, so that they can be reported again.
 *
 * The rendezvous port is chosen on the node of rank 0 and sent to the others with GO.
 */
#include "controller/core/concerns/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/send.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/slurm.h"
#include "wire/json_ranks.h"

#define LAUNCHED_PEERS 32768U // limit of peers in the LAUNCHes in progress for an attempt

static const char *const state_names[RANK_STATES] = {
    [RANK_UNREPORTED] = "starting",
    [RANK_ASKED] = "starting",
    [RANK_READY] = "ready",
    [RANK_RELEASED] = "starting",
    [RANK_STARTED] = "running",
    [RANK_RETURNED] = "returned",
    [RANK_ENDED] = "done",
    [RANK_LOST] = "lost",
};

static void rank_clear(struct core_rank *rank)
{
    free(rank->log_path);
    free(rank->text);
    record_clear(&launch_exit_record, &rank->exit);
    job_usage_free(rank->usage);
}

static void drop(struct core_entry *entry)
{
    struct core_ranks *ranks = core_extra(entry)->ranks;
    if (ranks == NULL)
        return;
    for (size_t i = 0; i < ranks->count; i++)
        rank_clear(&ranks->items[i]);
    free(ranks);
    core_make_extra(entry)->ranks = NULL;
}

/* The ranks of its present attempt, created if there are none yet; NULL if the attempt has one node. For
 * attempts that existed when the controller started, on_resume() creates them. */
static struct core_ranks *take_ranks(struct core_entry *entry)
{
    const struct job *job = entry->job;
    if (!job_is_wide(job) || !job_state_is_active(job->state))
        return NULL;
    struct core_ranks *ranks = core_extra(entry)->ranks;
    if (ranks != NULL && ranks->token == job->token)
        return ranks;
    drop(entry);
    size_t count = job_node_count(job);
    ranks = xcalloc(1, sizeof(struct core_ranks) + count * sizeof(struct core_rank));
    ranks->token = job->token;
    ranks->count = count;
    core_make_extra(entry)->ranks = ranks;
    return ranks;
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    struct core_ranks *ranks = take_ranks(entry);
    if (ranks != NULL)
        ranks->may_have_gone = true;
}

/* --- what follows from what is known --- */

static bool is_over(const struct core_rank *rank)
{
    return rank->state >= RANK_RETURNED;
}

static bool has_failed(const struct core_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (is_over(&ranks->items[i]) && !core_rank_has_ended_well(&ranks->items[i]))
            return true;
    return false;
}

/* In a batch script, or with srun, the other ranks exist only for its steps. */
static bool is_led_to_end(const struct core_entry *entry)
{
    return slurm_is_on_first(&entry->job->ask->slurm) &&
           core_rank_has_ended_well(&core_extra(entry)->ranks->items[0]);
}

static bool must_stop(const struct core_entry *entry)
{
    return entry->job->state == JOB_STOPPING || has_failed(core_extra(entry)->ranks) || is_led_to_end(entry);
}

static bool may_go(const struct core_entry *entry)
{
    const struct core_ranks *ranks = core_extra(entry)->ranks;
    bool are_all_ready = true;
    for (size_t i = 0; i < ranks->count; i++) {
        if (core_rank_has_run(&ranks->items[i]))
            return true;
        are_all_ready = are_all_ready && ranks->items[i].state >= RANK_READY;
    }
    return are_all_ready || entry->job->started_ms != 0;
}

/* After a restart, rank 0 may be running before its node has reported. */
static bool is_port_known(const struct core_ranks *ranks)
{
    return ranks->items[0].state >= RANK_READY;
}

/* --- messages to a node --- */

static void send_go(struct core *core, struct core_entry *entry, uint32_t number, uint32_t link)
{
    const struct job *job = entry->job;
    struct core_ranks *ranks = core_extra(entry)->ranks;
    struct message_go go = {
        .id = core_attempt_id(job, number), .token = job->token, .port = ranks->items[0].port
    };
    core->effects.send(core->effects.arg, link, &message_go_record, &go);
    ranks->may_have_gone = true;
}

/* Data that is the same for all ranks of an attempt. */
struct pass {
    bool must_stop, is_released;
    size_t n_launches;        // that may follow
    struct record_list peers; // created for the first rank that is launched
};

static size_t count_in(const struct core_ranks *ranks, enum rank_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < ranks->count; i++)
        count += ranks->items[i].state == state;
    return count;
}

/* Each LAUNCH names all nodes. With very many nodes, the next ranks are launched when half of the last ones
 * are ready. */
static size_t count_launches(const struct core_ranks *ranks)
{
    size_t most = LAUNCHED_PEERS / ranks->count + 1, asked = count_in(ranks, RANK_ASKED);
    return asked <= most / 2 ? most - asked : 0;
}

static void launch(
    struct core *core, struct core_entry *entry, uint32_t number, uint32_t link, struct pass *pass)
{
    if (pass->n_launches == 0)
        return;
    if (pass->peers.count == 0)
        pass->peers = core_list_peers(core, entry->job);
    if (!core_send_launch(core, entry, number, link, &pass->peers))
        return;
    core_extra(entry)->ranks->items[number].state = RANK_ASKED;
    pass->n_launches--;
}

/* A running rank gets no message unless it must stop or its terms were changed. */
static bool is_settled(const struct core_entry *entry, const struct core_rank *rank, const struct pass *pass)
{
    bool is_going = rank->state == RANK_RELEASED || rank->state == RANK_STARTED;
    return is_over(rank) || (is_going && !pass->must_stop && job_run(entry->job)->terms == 0);
}

static void act_on_rank(struct core *core, struct core_entry *entry, uint32_t number, struct pass *pass)
{
    struct core_rank *rank = &core_extra(entry)->ranks->items[number];
    const struct job *job = entry->job;
    if (is_settled(entry, rank, pass))
        return;
    const struct core_node *node = core_find_node(core, job_node_name(job, number));
    if (node == NULL || !node->is_up)
        return;
    if (pass->must_stop) {
        core_send_stop(core, entry, number, node->link, &rank->sent);
    } else if (rank->state == RANK_UNREPORTED) {
        launch(core, entry, number, node->link, pass);
    } else if (rank->state == RANK_READY && pass->is_released &&
               (number == 0 || is_port_known(core_extra(entry)->ranks))) {
        send_go(core, entry, number, node->link);
        rank->state = RANK_RELEASED;
    } else if (job_run(job)->terms > 0 && rank->state >= RANK_RELEASED) {
        core_send_update(core, job, number, node->link, &rank->sent);
    }
}

static bool are_all_started(const struct core_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++)
        if (ranks->items[i].state < RANK_STARTED)
            return false;
    return true;
}

static bool is_untouched(const struct core_ranks *ranks)
{
    bool is_unreported = !ranks->may_have_gone;
    for (size_t i = 0; i < ranks->count; i++)
        is_unreported = is_unreported && ranks->items[i].state == RANK_UNREPORTED;
    return is_unreported;
}

static void act(struct core *core, struct core_entry *entry)
{
    struct core_ranks *ranks = take_ranks(entry);
    const char *node = NULL;
    if (ranks == NULL || entry->changed_in > core->durable_batch)
        return; // the change takes effect when it is durable
    if (entry->job->state == JOB_STARTING && is_untouched(ranks) && !core_can_meet(core, entry->job, &node)) {
        _cleanup_free_ char *text = xasprintf(
            "the other nodes cannot reach node %s: it connected to a loopback address, for example through a "
            "tunnel; start its mgpu-agent with --controller and an address of this machine",
            node);
        core_end_attempt(core, entry, END_START_FAILED, text);
        return;
    }
    struct pass pass = { .must_stop = must_stop(entry) };
    pass.is_released = !pass.must_stop && may_go(entry);
    pass.n_launches = count_launches(ranks);
    for (uint32_t number = 0; number < ranks->count; number++)
        act_on_rank(core, entry, number, &pass);
    core_free_peers(&pass.peers);
    if (are_all_started(ranks))
        core_drop_spec(core, core_extra(entry)->array != NULL ? core_extra(entry)->array : entry);
}

/* --- the end of a rank --- */

/* When the node of a lost rank last sent a message before it became unreachable. */
static int64_t last_contact_ms(const struct core *core, const struct core_entry *entry, uint32_t number)
{
    const struct core_node *node = core_find_node(core, job_node_name(entry->job, number));
    const struct core_rank *rank = &core_extra(entry)->ranks->items[number];
    if (rank->left_ms != 0 || node == NULL)
        return rank->left_ms;
    return node->is_up ? node->left_ms : node->last_contact_ms;
}

/* True if the cause for stopping the others is known. After a restart, a stopped rank may be reported before
 * its cause. */
static bool has_cause(const struct core_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++) {
        const struct core_rank *rank = &ranks->items[i];
        bool was_stopped = rank->state == RANK_ENDED && rank->exit.end == END_CANCELLED;
        if (is_over(rank) && !was_stopped && !core_rank_has_ended_well(rank))
            return true;
    }
    return false;
}

/* A rank has ended, and possibly the attempt with it. */
static void end_rank(
    struct core *core, struct core_entry *entry, struct core_rank *rank, enum rank_state state)
{
    struct core_ranks *ranks = core_extra(entry)->ranks;
    bool was_stopping = must_stop(entry); // in that case the other ranks have been informed
    rank->is_in_stop = entry->job->state == JOB_STOPPING || has_cause(ranks);
    rank->state = state;
    rank->order = ++ranks->n_over;
    rank->report_ms = core_rank_is_loss(rank) ? last_contact_ms(core, entry, (uint32_t)(rank - ranks->items))
                                              : core->boot_ms;
    if (ranks->n_over == ranks->count) {
        core_ranks_end(core, entry);
        drop(entry);
    } else if (!was_stopping) {
        core_act_later(core, entry); // a fence that ended it may not be durable yet
    }
}

/* --- reports of nodes --- */

static struct core_rank *find_open(struct core_entry *entry, uint32_t number)
{
    struct core_ranks *ranks = take_ranks(entry);
    return ranks != NULL && number < ranks->count && !is_over(&ranks->items[number]) ? &ranks->items[number]
                                                                                     : NULL;
}

static void note_ready(
    struct core *core, struct core_entry *entry, uint32_t number, const struct message_ready *ready)
{
    struct core_rank *rank = find_open(entry, number);
    if (rank == NULL || rank->state == RANK_STARTED)
        return;
    rank->state = RANK_READY;
    rank->port = ready->port;
    if (may_go(entry) || count_in(core_extra(entry)->ranks, RANK_UNREPORTED) > 0)
        act(core, entry);
}

static void note_started(
    struct core *core, struct core_entry *entry, uint32_t number, const struct launch_started *started)
{
    struct core_rank *rank = find_open(entry, number);
    if (rank == NULL || rank->state == RANK_STARTED)
        return;
    rank->state = RANK_STARTED;
    rank->was_alive = true;
    rank->port = started->port;
    free(rank->log_path);
    rank->log_path = xstrdup(started->log_path);
    if (number == 0)
        core_begin_attempt(core, entry, rank->log_path, started->text);
    act(core, entry);
}

static void note_return(
    struct core *core, struct core_entry *entry, uint32_t number, uint32_t cause, const char *text)
{
    struct core_rank *rank = find_open(entry, number);
    if (rank == NULL)
        return;
    free(rank->text);
    rank->text = xstrdup(text);
    rank->cause = cause;
    end_rank(core, entry, rank, RANK_RETURNED);
}

/* The clocks of nodes may differ, but they run at the same speed. */
static int64_t end_of(const struct core *core, const struct core_entry *entry, const struct core_node *node,
    const struct launch_exit *record)
{
    const char *boot = job_node_boot(entry->job, record->id.rank);
    bool is_known = record->ended_ago_ms > 0 && core_is_same_boot(boot, node->hello.boot_id);
    return is_known ? core->boot_ms - record->ended_ago_ms : 0;
}

static void note_exit(struct core *core, struct core_entry *entry, const struct core_node *node,
    const struct launch_exit *record)
{
    uint32_t number = record->id.rank;
    struct core_rank *rank = find_open(entry, number);
    if (rank == NULL)
        return;
    record_clear(&launch_exit_record, &rank->exit);
    if (record->is_executed == 0 && record->end == END_UNKNOWN) {
        note_return(core, entry, number, record->cause, record->text);
        return;
    }
    record_copy(&launch_exit_record, &rank->exit, record);
    rank->ended_ms = end_of(core, entry, node, record);
    if (record->log_path != NULL) {
        free(rank->log_path);
        rank->log_path = xstrdup(record->log_path);
    }
    if (number == 0 && record->is_executed != 0)
        core_begin_attempt(core, entry, rank->log_path, NULL);
    end_rank(core, entry, rank, RANK_ENDED);
}

static void lose(
    struct core *core, struct core_entry *entry, uint32_t number, enum job_end end, const char *text)
{
    struct core_rank *rank = find_open(entry, number);
    if (rank == NULL)
        return;
    free(rank->text);
    rank->text = xstrdup(text);
    rank->end = end;
    end_rank(core, entry, rank, RANK_LOST);
}

static bool has_started(struct core_entry *entry, uint32_t number)
{
    const struct core_rank *rank = find_open(entry, number);
    return rank != NULL && rank->state == RANK_STARTED;
}

static bool is_lost(struct core_entry *entry, uint32_t number)
{
    const struct core_ranks *ranks = take_ranks(entry);
    return ranks != NULL && number < ranks->count && ranks->items[number].state == RANK_LOST;
}

static void on_usage(struct core *core, struct core_entry *entry, const struct attempt_usage *usage)
{
    struct core_rank *rank = find_open(entry, usage->id.rank);
    if (rank != NULL)
        core_ranks_take_usage(entry, rank, usage->usage.items);
}

/* --- links --- */

static void reconcile(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    if (!job_is_wide(entry->job))
        return;
    struct job *job = entry->job;
    uint32_t number = (uint32_t)job_rank_on(job, node->name);
    struct core_rank *rank = find_open(entry, number);
    const struct known_attempt *known = core_find_known(node, job, number);
    if (rank == NULL)
        return;
    if (known != NULL && known->phase == PHASE_EXITED && rank->left_ms == 0)
        rank->left_ms = node->left_ms;
    if (known != NULL && known->phase < PHASE_EXITED)
        rank->was_alive = true;
    const char *boot = job_node_boot(job, number);
    bool is_same_spool = text_equal(boot, node->hello.boot_id);
    if (known == NULL && !core_is_same_boot(boot, node->hello.boot_id)) {
        lose(core, entry, number, END_REBOOT, "its node rebooted while it ran");
        return;
    }
    if (known == NULL && (rank->state == RANK_STARTED || job->started_ms != 0 || !is_same_spool ||
                             core_may_be_over(core, entry, node))) {
        lose(core, entry, number, END_UNKNOWN, NO_RECORD);
        return;
    }
    if (rank->state != RANK_STARTED)
        rank->state = known == NULL || known->phase == PHASE_STAGED ? RANK_UNREPORTED : RANK_ASKED;
    act(core, entry);
}

static void on_down(struct core *core, struct core_node *node)
{
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node->name, &count);
    for (size_t i = 0; i < count; i++) {
        struct core_entry *entry = entries[i];
        int number = job_is_wide(entry->job) ? job_rank_on(entry->job, node->name) : -1;
        struct core_rank *rank = number >= 0 ? find_open(entry, (uint32_t)number) : NULL;
        if (rank != NULL && rank->state < RANK_STARTED)
            rank->state = RANK_UNREPORTED;
    }
}

/* --- messages --- */

/* True if this node has that rank of the current attempt. */
static bool is_own_rank(
    const struct core_entry *entry, const struct core_node *node, uint32_t rank, uint64_t token)
{
    return entry != NULL && job_is_wide(entry->job) && job_state_is_active(entry->job->state) &&
           entry->job->token == token && job_is_rank_on(entry->job, rank, node->name);
}

static void on_ready(struct core *core, struct core_node *node, const void *message)
{
    const struct message_ready *ready = message;
    struct core_entry *entry = core_find(core, ready->id.job);
    if (is_own_rank(entry, node, ready->id.rank, ready->token))
        note_ready(core, entry, ready->id.rank, ready);
}

static void on_started(struct core *core, struct core_node *node, const void *message)
{
    const struct launch_started *started = message;
    struct core_entry *entry = core_find(core, started->id.job);
    if (is_own_rank(entry, node, started->id.rank, started->token))
        note_started(core, entry, started->id.rank, started);
}

/* The exit record is released together with the others: a later controller may need it. */
static void on_exited(struct core *core, struct core_node *node, const void *message)
{
    const struct launch_exit *record = message;
    struct core_entry *entry = core_find_current(core, node, &record->id, record->token);
    if (entry == NULL || !job_is_wide(entry->job))
        return;
    if (is_lost(entry, record->id.rank))
        take_ranks(entry)->items[record->id.rank].has_record = true;
    else
        note_exit(core, entry, node, record);
}

static void on_returned(struct core *core, struct core_node *node, const void *message)
{
    const struct message_returned *returned = message;
    struct core_entry *entry = core_find_current(core, node, &returned->id, returned->token);
    if (entry == NULL || !job_is_wide(entry->job))
        return;
    if (!has_started(entry, returned->id.rank) && !is_lost(entry, returned->id.rank)) {
        note_return(core, entry, returned->id.rank, returned->cause, returned->text);
        return; // it is released together with the others
    }
    /* A rank that has started cannot have been returned: its agent has lost its state. */
    if (has_started(entry, returned->id.rank))
        lose(core, entry, returned->id.rank, END_UNKNOWN, NO_RECORD);
    core_forget_stated(core, node, &returned->id, returned->token);
}

static void on_gone(struct core *core, struct core_entry *entry)
{
    drop(entry);
}

/* --- reading --- */

static const struct core_ranks *ranks_of(const struct core_entry *entry)
{
    const struct core_ranks *ranks = core_extra(entry)->ranks;
    bool is_present = ranks != NULL && ranks->token == entry->job->token;
    return is_present && job_is_wide(entry->job) ? ranks : NULL;
}

struct json_rank *core_ranks_list(const struct core_entry *entry)
{
    const struct core_ranks *ranks = ranks_of(entry);
    if (ranks == NULL)
        return NULL;
    struct json_rank *looks = xcalloc(ranks->count, sizeof(*looks));
    for (size_t i = 0; i < ranks->count; i++) {
        const struct core_rank *rank = &ranks->items[i];
        looks[i] = (struct json_rank){
            .state = state_names[rank->state],
            .log_path = rank->log_path,
            .has_exit = rank->state == RANK_ENDED,
            .end = (enum job_end)rank->exit.end,
            .exit_code = rank->exit.exit_code,
        };
    }
    return looks;
}

const char *core_log_path(const struct core *core, const struct job *job, uint32_t number)
{
    const struct core_entry *entry = core_find(core, job->id);
    const struct core_ranks *ranks = entry != NULL ? ranks_of(entry) : NULL;
    const struct job_node *node = job_node(job, number);
    if (number == 0)
        return job_run(job)->log_path;
    if (ranks != NULL)
        return number < ranks->count ? ranks->items[number].log_path : NULL;
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
    .name = "ranks",
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

/* SPDX-License-Identifier: MIT */
/*
 * GPU time of API tokens (mgpu token create --max-gpu-hours). Jobs submitted with such a token use up its GPU
 * time together: the time for which each attempt held its GPUs since its start, without the time for which it
 * was parked. What ended attempts have used is a row of the store; what running ones use follows from their
 * records. When all of it is used up, the token's jobs are ended and its submits are refused. A row is
 * removed some time after the token has expired.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"
#include "controller/core/submit.h"
#include "job/array.h"

#define ROW_KIND    "token_budget"
#define ROW_KEPT_MS (7LL * 24 * 3600 * 1000) // time after the token's expiry
#define HOUR_MS     3600000.0
#define WHOLE       ((double)ASK_SHARE_WHOLE)

struct budget_row {
    uint64_t token, max_ms, used_ms;
    int64_t expires_ms;
};

static const struct record_field row_fields[] = {
    RECORD_FIELD(484, RECORD_U64, struct budget_row, token, 0),
    RECORD_FIELD(485, RECORD_U64, struct budget_row, max_ms, 0),
    RECORD_FIELD(486, RECORD_U64, struct budget_row, used_ms, 0),
    RECORD_FIELD(487, RECORD_I64, struct budget_row, expires_ms, 0),
};

static const struct record_type row_record = RECORD_TYPE(481, "token budget", struct budget_row, row_fields);

/* A running attempt. */
struct share {
    struct core_entry *entry;
    uint64_t milli;   // thousandths of GPUs
    int64_t ran_ms;   // up to since_ms
    int64_t since_ms; // start of the time for which it has held its GPUs; 0: it is parked
};

struct budget {
    struct budget *next;
    struct budget_row row; // as stored
    struct share *shares;
    size_t n_shares;
    size_t open;         // jobs that have not ended
    int64_t due_ms;      // boot clock: when it will be used up if nothing changes; TIME_NEVER
    bool has_ended_jobs; // it is used up, and all its jobs have ended or are stopping
};

struct core_budgets {
    struct budget *first;
    int64_t due_ms; // the earliest
};

static struct budget *find(const struct core *core, uint64_t token)
{
    struct budget *budget = token != 0 ? core->budgets->first : NULL;
    while (budget != NULL && budget->row.token != token)
        budget = budget->next;
    return budget;
}

static double share_ms(const struct share *share, int64_t now_ms)
{
    int64_t ran_ms = share->ran_ms + (share->since_ms != 0 ? now_ms - share->since_ms : 0);
    return ran_ms > 0 ? (double)ran_ms * (double)share->milli / WHOLE : 0;
}

static double used_ms(const struct budget *budget, int64_t now_ms)
{
    double sum = (double)budget->row.used_ms;
    for (size_t i = 0; i < budget->n_shares; i++)
        sum += share_ms(&budget->shares[i], now_ms);
    return sum;
}

uint64_t core_token_used_ms(const struct core *core, int64_t wall_ms, uint64_t token)
{
    const struct budget *budget = find(core, token);
    return budget != NULL ? (uint64_t)used_ms(budget, core_now_ms(core, wall_ms)) : 0;
}

/* --- the store --- */

static const char *row_key(const struct budget *budget, char *key, size_t size)
{
    (void)snprintf(key, size, "%" PRIu64, budget->row.token);
    return key;
}

static void keep(struct core *core, const struct budget *budget)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    record_encode(&row_record, &budget->row, &bytes);
    store_batch_put(core_batch(core)->changes, ROW_KIND, row_key(budget, key, sizeof(key)), &bytes);
}

static struct budget *add(struct core *core, const struct budget_row *row)
{
    struct budget *budget = xcalloc(1, sizeof(*budget));
    *budget = (struct budget){ .row = *row, .next = core->budgets->first, .due_ms = TIME_NEVER };
    core->budgets->first = budget;
    return budget;
}

static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct budget_row row = { 0 };
    int r = record_decode(&row_record, bytes, length, &row, err);
    if (r == 0)
        (void)add(core, &row);
    return r;
}

static void free_budget(struct budget *budget)
{
    free(budget->shares);
    free(budget);
}

static void remove_expired(struct core *core)
{
    for (struct budget **at = &core->budgets->first; *at != NULL;) {
        struct budget *budget = *at;
        char key[24];
        if (budget->open > 0 || budget->row.expires_ms + ROW_KEPT_MS > core->now_ms) {
            at = &budget->next;
            continue;
        }
        store_batch_remove(core_batch(core)->changes, ROW_KIND, row_key(budget, key, sizeof(key)));
        *at = budget->next;
        free_budget(budget);
    }
}

/* --- the time at which it is used up --- */

static void plan(struct core *core, struct budget *budget)
{
    double left_ms = (double)budget->row.max_ms - used_ms(budget, core->now_ms), milli = 0;
    for (size_t i = 0; i < budget->n_shares; i++)
        milli += budget->shares[i].since_ms != 0 ? (double)budget->shares[i].milli : 0;
    if (left_ms <= 0)
        budget->due_ms = budget->has_ended_jobs || budget->open == 0 ? TIME_NEVER : core->boot_ms;
    else
        budget->due_ms = milli > 0 ? core->boot_ms + (int64_t)(left_ms * WHOLE / milli) + 1 : TIME_NEVER;
    core->budgets->due_ms = TIME_NEVER;
    for (budget = core->budgets->first; budget != NULL; budget = budget->next)
        if (budget->due_ms < core->budgets->due_ms)
            core->budgets->due_ms = budget->due_ms;
}

static int64_t next_ms(const struct core *core)
{
    return core->budgets->due_ms;
}

/* A job without GPUs uses none of the budget. */
static bool has_gpus(const struct job_ask *ask)
{
    return ask->gpus > 0 || ask->gpu_share > 0;
}

static bool can_stop(const struct job *job)
{
    return has_gpus(job->ask) && job->state != JOB_DONE && job->state != JOB_STOPPING &&
           job->stop_reason == END_NONE;
}

static void end_jobs(struct core *core, struct budget *budget)
{
    struct core_entry *after = NULL;
    budget->has_ended_jobs = true;
    for (struct core_entry *entry = core->jobs.first; entry != NULL; entry = after) {
        after = entry->after;
        if (entry->job->api_token == budget->row.token && can_stop(entry->job))
            core_stop_job(core, entry, core->options.admin_uid, END_BUDGET);
    }
    plan(core, budget);
}

static void run_due(struct core *core)
{
    for (struct budget *budget = core->budgets->first; budget != NULL; budget = budget->next)
        if (budget->due_ms <= core->boot_ms)
            end_jobs(core, budget);
}

/* --- jobs --- */

static struct share *find_share(const struct budget *budget, const struct core_entry *entry)
{
    for (size_t i = 0; i < budget->n_shares; i++)
        if (budget->shares[i].entry == entry)
            return &budget->shares[i];
    return NULL;
}

static struct share *add_share(struct budget *budget, struct core_entry *entry)
{
    budget->shares = xreallocarray(budget->shares, budget->n_shares + 1, sizeof(*budget->shares));
    struct share *share = &budget->shares[budget->n_shares++];
    *share = (struct share){ .entry = entry, .milli = gpu_grants_milli(&entry->job->grants) };
    return share;
}

/* Called when the attempt has ended. */
static void charge(struct core *core, struct budget *budget, struct share *share)
{
    budget->row.used_ms += (uint64_t)share_ms(share, core->now_ms);
    *share = budget->shares[--budget->n_shares];
    keep(core, budget);
}

static void follow(struct core *core, struct budget *budget, struct core_entry *entry)
{
    const struct job *job = entry->job;
    struct share *share = find_share(budget, entry);
    bool is_running = job->state == JOB_RUNNING || (job->state == JOB_STOPPING && share != NULL);
    if (is_running && share == NULL)
        share = add_share(budget, entry);
    if (share == NULL)
        return;
    bool is_holding = is_running && job_holds_gpus(job);
    if (is_holding && share->since_ms == 0) {
        share->since_ms = core->now_ms;
    } else if (!is_holding && share->since_ms != 0) {
        share->ran_ms += core->now_ms - share->since_ms;
        share->since_ms = 0;
    }
    if (!is_running)
        charge(core, budget, share);
}

/* The event of a token's first job contains its budget. */
static struct budget *admit(struct core *core, const struct job_event *event)
{
    const struct event_credential *credential = event->credential.items;
    if (event->credential.count == 0)
        return NULL;
    struct budget *budget = find(core, credential->token);
    if (budget == NULL && credential->max_gpu_ms != 0) {
        struct budget_row row = {
            .token = credential->token, .max_ms = credential->max_gpu_ms, .expires_ms = credential->expires_ms
        };
        remove_expired(core);
        budget = add(core, &row);
        keep(core, budget);
    }
    if (budget != NULL)
        budget->open++;
    return budget;
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    if (job->api_token == 0)
        return;
    bool is_new = news->event->type == EVENT_SUBMITTED;
    struct budget *budget = is_new ? admit(core, news->event) : find(core, job->api_token);
    if (budget == NULL)
        return;
    follow(core, budget, entry);
    if (job->state == JOB_DONE)
        budget->open--;
    else if (can_stop(job))
        budget->has_ended_jobs = false;
    plan(core, budget);
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    const struct job *job = entry->job;
    struct budget *budget = find(core, job->api_token);
    if (budget == NULL || job->state == JOB_DONE)
        return;
    budget->open++;
    if (job->state == JOB_RUNNING || (job->state == JOB_STOPPING && job->started_ms != 0)) {
        struct share *share = add_share(budget, entry);
        share->ran_ms = core->now_ms - job->started_ms - job_parked_ms(job, core->now_ms);
        share->since_ms = job_holds_gpus(job) ? core->now_ms : 0;
    }
    plan(core, budget);
}

/* --- submits --- */

/* The maximum GPU time that it may use; 0: it has no time limit. */
static double most_ms(const struct core *core, const struct job_ask *ask)
{
    double gpus = ask->gpu_share != 0 ? ask->gpu_share / WHOLE : ask->gpus, elements = 1;
    struct array array;
    if (ask->array != NULL && parse_array(ask->array, &array, NULL) == 0) {
        elements = array_size(&array);
        array_clear(&array);
    }
    const struct core_partition_terms terms = core_partition_terms(core, ask);
    return (double)core_limit_of(core, ask, &terms) * gpus * elements;
}

static int check(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err)
{
    if (who->token.max_gpu_ms == 0 || !has_gpus(&spec->ask))
        return 0;
    const struct budget *budget = find(core, who->token.id);
    double max_ms = (double)who->token.max_gpu_ms;
    double left_ms = max_ms - (budget != NULL ? used_ms(budget, core->now_ms) : 0);
    double wanted_ms = most_ms(core, &spec->ask);
    if (left_ms <= 0) {
        (void)error_set(err, -EPERM, "the jobs of this token have used its %.4g GPU-hours", max_ms / HOUR_MS);
        return error_hint(err, "create another one: mgpu token create --max-gpu-hours N");
    }
    if (wanted_ms <= left_ms)
        return 0;
    (void)error_set(err, -EPERM, "requested up to %.4g GPU-hours; this token has %.4g of %.4g left",
        wanted_ms / HOUR_MS, left_ms / HOUR_MS, max_ms / HOUR_MS);
    return error_hint(err, "request fewer GPUs, or a shorter time limit (-t)");
}

static void init(struct core *core)
{
    core->budgets = xcalloc(1, sizeof(*core->budgets));
    core->budgets->due_ms = TIME_NEVER;
}

static void clear(struct core *core)
{
    while (core->budgets->first != NULL) {
        struct budget *budget = core->budgets->first;
        core->budgets->first = budget->next;
        free_budget(budget);
    }
    free(core->budgets);
}

static const struct core_kind kinds[] = {
    { .kind = ROW_KIND, .load = load },
    { 0 },
};

const struct core_concern core_concern_budgets = {
    .name = "budgets",
    .init = init,
    .free = clear,
    .kinds = kinds,
    .resume = on_resume,
    .check = check,
    .events = CORE_ON_ALL,
    .event = on_event,
    .next_ms = next_ms,
    .run = run_due,
};

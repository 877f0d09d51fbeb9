/* SPDX-License-Identifier: MIT */
/*
 * The jobs ahead of a job: the forecast shows which GPUs it will get, so these are the jobs that have them
 * before it, running and waiting ones, and those for which currently free GPUs are held. The forecast start
 * depends on their durations, and the least certain of these is reported.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "sched/sched_private.h"
#include "sched/why.h"

#define AHEAD_MAX   (sizeof(((struct why *)NULL)->ahead) / sizeof(struct why_ahead))
#define RUNNING_MAX (AHEAD_MAX / 2)

/* Knowledge about how long a job takes, the least certain first. */
enum surety {
    SURE_DEFAULT,
    SURE_ALL,
    SURE_USER,
    SURE_TOGETHER,
    SURE_COMMAND,
    SURE_GIVEN,
    SURE_LIMIT,
    SURETIES
};

struct listing {
    const struct sched *sched;
    const struct sched_job *job;
    const struct forecast_row *row; // its start; NULL: not known
    struct why *why;
    enum surety least; // SURETIES: no job is ahead
    uint64_t endless;  // one without a time limit, 0: none
};

static enum surety surety_of(const struct sched *sched, const struct class_key *key, int64_t elapsed_ms)
{
    static const enum surety of_basis[] = {
        [BASIS_NONE] = SURE_DEFAULT,
        [BASIS_ALL] = SURE_ALL,
        [BASIS_USER] = SURE_USER,
        [BASIS_USER_GPUS] = SURE_USER,
        [BASIS_COMMAND] = SURE_COMMAND,
        [BASIS_COMMAND_LIMIT] = SURE_COMMAND,
        [BASIS_BURST] = SURE_TOGETHER,
    };
    struct estimate estimate;
    if (key->estimate_ms > 0)
        return SURE_GIVEN;
    sched_class_estimate(sched, key, elapsed_ms, ESTIMATE_LIKELY, &estimate);
    if (estimate.basis == BASIS_BURST &&
        estimate.samples == 0) { // none of them has ended: the basis of the estimate then
        struct class_key alone = *key;
        alone.burst = 0;
        sched_class_estimate(sched, &alone, elapsed_ms, ESTIMATE_LIKELY, &estimate);
    }
    return key->limit_ms > 0 && estimate.likely_ms >= key->limit_ms ? SURE_LIMIT : of_basis[estimate.basis];
}

static bool share_a_node(const struct allocation *a, const struct allocation *b)
{
    for (size_t i = 0; i < a->n_nodes; i++)
        for (size_t k = 0; k < b->n_nodes; k++)
            if (a->nodes[i].node == b->nodes[k].node)
                return true;
    return false;
}

/* It has the job's future GPUs before the job does. A job without GPUs waits for its node. */
static bool is_between(const struct listing *listing, const struct allocation *held)
{
    const struct allocation *wanted = &listing->row->allocation;
    return wanted->n_gpus > 0 ? sched_shares_gpu(held, wanted) : share_a_node(held, wanted);
}

static void note(struct listing *listing, const struct sched_job *ahead, const struct why_ahead *row)
{
    struct why *why = listing->why;
    const struct class_key *key = &ahead->class->key;
    for (size_t i = 0; i < why->n_ahead; i++)
        if (why->ahead[i].job == row->job)
            return;
    int64_t elapsed = row->is_running ? sched_run_elapsed(ahead->run, listing->sched->now_ms) : 0;
    enum surety surety = surety_of(listing->sched, key, elapsed);
    listing->least = surety < listing->least ? surety : listing->least;
    if (listing->endless == 0 && key->limit_ms == 0)
        listing->endless = row->job;
    if (why->n_ahead < (row->is_running ? RUNNING_MAX : AHEAD_MAX))
        why->ahead[why->n_ahead++] = *row;
}

static int64_t end_of(const struct sched *sched, const struct sched_run *run)
{
    return run->expected_end_ms > sched->now_ms ? run->expected_end_ms : sched->now_ms + 1;
}

static bool is_named(const struct why *why, uint64_t job)
{
    for (size_t i = 0; i < why->n_reasons; i++)
        for (size_t k = 0; k < why->reasons[i].n_jobs; k++)
            if (why->reasons[i].jobs[k] == job)
                return true;
    return false;
}

/* At a limit it waits for the other jobs of the account, whatever they run on. */
static bool is_in_the_way(
    const struct listing *listing, const struct sched_run *run, const struct account *limiting)
{
    if (listing->row == NULL)
        return is_named(listing->why, run->job->entry.job);
    if (end_of(listing->sched, run) > listing->row->start_ms)
        return false;
    if (limiting != NULL)
        return run->job->class->account == limiting || run->job->class->group == limiting;
    return is_between(listing, &run->allocation);
}

static void list_running(struct listing *listing)
{
    const struct sched *sched = listing->sched;
    const struct queue_class *class = listing->job->class;
    _cleanup_free_ struct sched_run **runs = xcalloc(sched->n_runs + 1, sizeof(struct sched_run *));
    char text[160];
    const struct account *limiting =
        sched_limiting(sched, &class->key, class->account, class->group, text, sizeof(text));
    size_t count = 0;
    for (size_t i = 0; i < sched->n_runs; i++)
        if (is_in_the_way(listing, sched->runs[i], limiting))
            runs[count++] = sched->runs[i];
    qsort(runs, count, sizeof(struct sched_run *), sched_compare_ends);
    for (size_t i = 0; i < count; i++)
        note(listing, runs[i]->job,
            &(struct why_ahead){
                runs[i]->job->entry.job, runs[i]->allocated_ms, end_of(sched, runs[i]), true });
}

static void list_waiting(struct listing *listing, const struct forecast *forecast)
{
    struct why *why = listing->why;
    for (const struct forecast_row *row = forecast->rows; listing->row != NULL && row < listing->row; row++) {
        const struct sched_job *ahead = sched_find(listing->sched, row->job);
        if (ahead != NULL && is_between(listing, &row->allocation))
            note(listing, ahead, &(struct why_ahead){ row->job, row->start_ms, TIME_NEVER, false });
    }
    if (why->n_reasons == 0 || why->reasons[0].code != WHY_PRIORITY)
        return; // no free resources that it needs are held for others
    for (size_t i = 0; i < why->reasons[0].n_jobs; i++) {
        uint64_t id = why->reasons[0].jobs[i];
        const struct sched_job *ahead = sched_find(listing->sched, id);
        if (ahead != NULL)
            note(listing, ahead, &(struct why_ahead){ id, forecast_find(forecast, id), TIME_NEVER, false });
    }
}

static void describe_basis(const struct listing *listing)
{
    static const char *const as_long_as[SURETIES] = {
        [SURE_ALL] = "if the jobs ahead of it take as long as earlier jobs here",
        [SURE_USER] = "if the jobs ahead of it take as long as their users' earlier jobs",
        [SURE_TOGETHER] = "if the jobs ahead of it take as long as the jobs submitted with them",
        [SURE_COMMAND] = "if the jobs ahead of it take as long as similar jobs",
        [SURE_GIVEN] = "if the jobs ahead of it take as long as estimated",
        [SURE_LIMIT] = "if the jobs ahead of it use their full time limits",
    };
    struct why *why = listing->why;
    const struct job_rules *rules = listing->job->rules;
    char usual[32];
    if (why->eta_ms == TIME_NEVER)
        return;
    format_duration(listing->sched->settings.default_run_ms, usual, sizeof(usual));
    if (listing->least == SURE_DEFAULT)
        (void)snprintf(why->eta_basis, sizeof(why->eta_basis),
            "if the jobs ahead of it take %s, which is assumed until jobs have ended here", usual);
    else if (listing->least < SURETIES)
        (void)snprintf(why->eta_basis, sizeof(why->eta_basis), "%s", as_long_as[listing->least]);
    else if (rules != NULL && rules->begin_ms >= why->eta_ms)
        (void)snprintf(why->eta_basis, sizeof(why->eta_basis), "its begin time");
    else if (why->n_reasons > 0 && why->reasons[0].code == WHY_RESERVATION)
        (void)snprintf(why->eta_basis, sizeof(why->eta_basis), "when a reservation ends or is released");
}

static void describe_latest_basis(const struct listing *listing)
{
    struct why *why = listing->why;
    const char *reservations = listing->sched->n_reservations > 0 ? ", if reservations are used in full" : "";
    if (why->latest_ms != TIME_NEVER && listing->endless != 0) // others then hold what it waits for
        (void)snprintf(why->latest_basis, sizeof(why->latest_basis),
            "from time limits of other jobs: job %llu ahead of it has none%s",
            (unsigned long long)listing->endless, reservations);
    else if (why->latest_ms != TIME_NEVER && listing->least < SURETIES)
        (void)snprintf(why->latest_basis, sizeof(why->latest_basis),
            "from the time limits of the jobs ahead of it%s", reservations);
    else if (why->latest_ms != TIME_NEVER)
        (void)snprintf(why->latest_basis, sizeof(why->latest_basis), "%s",
            reservations[0] != '\0' ? "if reservations are used in full" : "");
    else if (listing->endless != 0)
        (void)snprintf(why->latest_basis, sizeof(why->latest_basis), "unknown: job %llu has no time limit",
            (unsigned long long)listing->endless);
    else
        (void)snprintf(
            why->latest_basis, sizeof(why->latest_basis), "unknown: a job ahead of it has no time limit");
}

/* Its GPUs will be free by then, so no job is ahead of it, regardless of who has them now. */
static bool starts_at_begin(const struct listing *listing)
{
    const struct job_rules *rules = listing->job->rules;
    return rules != NULL && listing->row != NULL && rules->begin_ms > listing->sched->now_ms &&
           listing->row->start_ms <= rules->begin_ms;
}

void why_list_ahead(const struct sched *sched, const struct forecast *forecast, uint64_t id, struct why *why)
{
    struct listing listing = { .sched = sched, .why = why, .least = SURETIES };
    listing.job = sched_find(sched, id);
    listing.row = forecast_row(forecast, id);
    if (listing.job == NULL || listing.job->run != NULL)
        return;
    if (!starts_at_begin(&listing)) {
        list_running(&listing);
        list_waiting(&listing, forecast);
    }
    describe_basis(&listing);
    describe_latest_basis(&listing);
}

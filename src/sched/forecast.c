/* SPDX-License-Identifier: MIT */
/*
 * A forecast is a run of the scheduler on a copy: running jobs end when expected (or at their limits), and
 * the passes in between are real. Held jobs and those with dependencies are not in the copy, and no new jobs
 * arrive, so a later job of higher priority can still delay a forecast start.
 */
#include "sched/forecast.h"

#include <stdlib.h>

#include "base/memory.h"

#define STEPS_MAX 20000U                            // maximum number of ends and timers processed
#define YEAR_MS   (INT64_C(365) * 24 * 3600 * 1000) // later times are unknown

#define ELEMENT (UINT64_C(1) << 63)

struct forecast_run {
    struct forecast forecast;
    struct sched_copying *copying; // while the copy is being made
    struct sched *copy;            // then
    int64_t began_ms, now_ms;
    uint64_t wanted;
    size_t steps;
    bool is_found, is_certain; // `wanted` has started
};

static uint64_t note_start(void *arg, uint64_t job, const struct allocation *allocation)
{
    struct forecast_run *run = arg;
    struct forecast *forecast = &run->forecast;
    run->is_found |= job == run->wanted;
    if (forecast->n_rows == forecast->capacity) {
        forecast->capacity = forecast->capacity > 0 ? forecast->capacity * 2 : 64;
        forecast->rows = xreallocarray(forecast->rows, forecast->capacity, sizeof(*forecast->rows));
    }
    struct forecast_row *row = &forecast->rows[forecast->n_rows++];
    *row = (struct forecast_row){ .job = job, .start_ms = run->now_ms };
    if (run->wanted != 0)
        allocation_copy(&row->allocation, allocation);
    return ELEMENT | forecast->n_rows; // elements of arrays need their own ids
}

/* Preempted jobs stop at once. */
static void stop_at_once(void *arg, uint64_t job, const char *why)
{
    struct forecast_run *run = arg;
    sched_stopped(run->copy, run->now_ms, job, 0);
}

/* Advances to the next end or timer; false: nothing more will happen. Jobs that end at the same time are
 * followed by one pass. */
static bool step(struct forecast_run *run)
{
    int64_t end_ms, timer_ms = sched_next_ms(run->copy);
    uint64_t job = sched_next_end(run->copy, &end_ms);
    if (job == 0 && timer_ms == TIME_NEVER)
        return false;
    if (job == 0 || timer_ms < end_ms) {
        run->now_ms = timer_ms > run->now_ms ? timer_ms : run->now_ms;
        return true;
    }
    run->now_ms = end_ms > run->now_ms ? end_ms : run->now_ms;
    for (int64_t same_ms = end_ms; job != 0 && end_ms == same_ms; job = sched_next_end(run->copy, &end_ms))
        sched_ended(run->copy, run->now_ms, job, -1);
    return true;
}

struct forecast_run *forecast_begin(
    const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always, bool is_certain)
{
    struct forecast_run *run = xcalloc(1, sizeof(*run));
    *run = (struct forecast_run){
        .now_ms = now_ms, .began_ms = now_ms, .wanted = always, .is_certain = is_certain
    };
    struct sched_callbacks callbacks = { .arg = run, .start = note_start, .preempt = stop_at_once };
    run->copying = sched_fork_begin(sched, now_ms, max_jobs, always, &callbacks);
    return run;
}

/* True: the copy is complete. */
static bool advance_copy(struct forecast_run *run)
{
    if (run->copying == NULL)
        return true;
    if (!sched_fork_advance(run->copying))
        return false;
    run->copy = sched_fork_end(take_ptr(run->copying));
    sched_keep_reservations(run->copy, run->is_certain);
    sched_assume_ends(run->copy, run->is_certain ? ENDS_CERTAIN : ENDS_EXPECTED);
    return true;
}

bool forecast_advance(struct forecast_run *run, size_t steps)
{
    for (; steps > 0 && !advance_copy(run); steps--)
        continue;
    if (run->copying != NULL)
        return false;
    for (; steps > 0 && run->steps < STEPS_MAX; steps--, run->steps++) {
        sched_pass(run->copy, run->now_ms);
        bool is_waited_for = run->wanted != 0 && !run->is_found;
        run->forecast.is_complete =
            !is_waited_for && (run->wanted != 0 || sched_queue(run->copy)->length == 0);
        if (run->forecast.is_complete || !step(run) || run->now_ms - run->began_ms > YEAR_MS)
            return true;
    }
    return run->steps >= STEPS_MAX;
}

void forecast_end(struct forecast_run *run, struct forecast *ret)
{
    if (ret != NULL)
        *ret = run->forecast;
    else
        forecast_clear(&run->forecast);
    sched_free(run->copying != NULL ? sched_fork_end(run->copying) : run->copy);
    free(run);
}

void forecast_run(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    bool is_certain, struct forecast *ret)
{
    struct forecast_run *run = forecast_begin(sched, now_ms, max_jobs, always, is_certain);
    (void)forecast_advance(run, SIZE_MAX);
    forecast_end(run, ret);
}

void forecast_clear(struct forecast *forecast)
{
    for (size_t i = 0; i < forecast->n_rows; i++)
        allocation_clear(&forecast->rows[i].allocation);
    free(forecast->rows);
    *forecast = (struct forecast){ 0 };
}

const struct forecast_row *forecast_row(const struct forecast *forecast, uint64_t job)
{
    for (size_t i = 0; i < forecast->n_rows; i++)
        if (forecast->rows[i].job == job)
            return &forecast->rows[i];
    return NULL;
}

int64_t forecast_find(const struct forecast *forecast, uint64_t job)
{
    const struct forecast_row *row = forecast_row(forecast, job);
    return row != NULL ? row->start_ms : TIME_NEVER;
}

/* SPDX-License-Identifier: MIT */
/*
 * As in mgpud (controller/core/concerns/forecasts.c): one run of the scheduler on a copy forecasts all jobs
 * that wait, and each job keeps its first forecast. A run for every submission would take hours, so there is
 * a minimum distance between them; jobs in between that have started meanwhile have none.
 */
#include "lab/sim/forecasts.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lab/sim/samples.h"
#include "sched/forecast.h"

#define FORECAST_JOBS 1000U // waiting jobs of one run, as in mgpud

void told_forecasts_init(struct told_forecasts *told, size_t n_jobs, int64_t span_ms, uint64_t count)
{
    *told = (struct told_forecasts){ .gap_ms = span_ms / (int64_t)count, .last_ms = -span_ms };
    calibration_init(&told->calibration);
    told->row_of = xcalloc(n_jobs + 1, sizeof(*told->row_of));
}

static void add(struct told_forecasts *told, uint32_t job, int64_t now_ms, int64_t start_ms)
{
    if (told->count == told->room) {
        told->room = told->room > 0 ? 2 * told->room : 256;
        told->rows = xreallocarray(told->rows, told->room, sizeof(*told->rows));
    }
    struct told_forecast *row = &told->rows[told->count++];
    *row =
        (struct told_forecast){ .job = job, .at_ms = now_ms, .wait_ms = start_ms - now_ms, .actual_ms = -1 };
    calibration_quantiles(&told->calibration, row->wait_ms, row->parts_ms);
    told->row_of[job] = (uint32_t)told->count;
}

/* Of the rows from `first` on, which are of one run. */
static void count_alike(struct told_forecasts *told, size_t first)
{
    uint32_t alike[CALIBRATION_RANGES] = { 0 };
    for (size_t i = first; i < told->count; i++)
        alike[calibration_range(told->rows[i].wait_ms)]++;
    for (size_t i = first; i < told->count; i++)
        told->rows[i].alike = alike[calibration_range(told->rows[i].wait_ms)];
}

void told_forecasts_make(
    struct told_forecasts *told, const struct sched *sched, int64_t now_ms, uint32_t n_submitted)
{
    struct forecast forecast;
    size_t first = told->count;
    if (now_ms - told->last_ms < told->gap_ms || n_submitted == told->next_job)
        return;
    forecast_run(sched, now_ms, FORECAST_JOBS, 0, false, &forecast);
    for (size_t i = 0; i < forecast.n_rows; i++) {
        const struct forecast_row *row = &forecast.rows[i];
        if (row->job > told->next_job && told->row_of[row->job - 1] == 0)
            add(told, (uint32_t)(row->job - 1), now_ms, row->start_ms);
    }
    forecast_clear(&forecast);
    count_alike(told, first);
    told->last_ms = now_ms;
    told->next_job = n_submitted;
}

void told_forecasts_start(struct told_forecasts *told, uint32_t job, int64_t now_ms)
{
    if (told->row_of[job] == 0)
        return;
    struct told_forecast *row = &told->rows[told->row_of[job] - 1];
    if (row->actual_ms >= 0)
        return;
    row->actual_ms = now_ms - row->at_ms;
    calibration_learn(&told->calibration, row->wait_ms, row->parts_ms, row->alike, row->actual_ms);
}

void told_forecasts_measure(const struct told_forecasts *told, struct forecast_metrics *ret)
{
    struct samples widths = { 0 }, errors = { 0 };
    struct summary summary;
    *ret = (struct forecast_metrics){ 0 };
    for (size_t i = 0; i < told->count; i++) {
        const struct told_forecast *row = &told->rows[i];
        if (row->actual_ms < 0)
            continue;
        ret->count++;
        for (size_t k = 0; k < CALIBRATION_PARTS; k++)
            ret->before[k] += row->actual_ms <= row->parts_ms[k];
        ret->within +=
            row->actual_ms >= row->parts_ms[0] && row->actual_ms <= row->parts_ms[CALIBRATION_PARTS - 1];
        double ratio = (double)(row->actual_ms + 30000) / (double)(row->wait_ms + 30000);
        samples_add(&errors, ratio > 1 ? ratio : 1 / ratio);
        samples_add(&widths,
            (double)(row->parts_ms[CALIBRATION_PARTS - 1] + 30000) / (double)(row->parts_ms[0] + 30000));
    }
    for (size_t k = 0; k < CALIBRATION_PARTS && ret->count > 0; k++)
        ret->before[k] /= (double)ret->count;
    ret->within /= ret->count > 0 ? (double)ret->count : 1;
    samples_summarize(&widths, &summary);
    ret->width = summary.median;
    samples_summarize(&errors, &summary);
    ret->plain_error = summary.median;
    samples_clear(&widths);
    samples_clear(&errors);
}

void told_forecasts_clear(struct told_forecasts *told)
{
    free(told->rows);
    free(told->row_of);
    *told = (struct told_forecasts){ 0 };
}

/* SPDX-License-Identifier: MIT */
/*
 * As in mgpud (controller/core/concerns/forecasts.c): one run of the scheduler on a copy forecasts all jobs
 * that wait, and each job keeps its first forecast. A run for every submission would take hours, so there is
 * a minimum distance between them; jobs in between that have started meanwhile have none.
 */
#include "lab/sim/forecasts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "lab/sim/samples.h"
#include "sched/forecast.h"

#define FORECAST_JOBS 1000U // waiting jobs of one run, as in mgpud

void made_forecasts_init(struct made_forecasts *forecasts, size_t n_jobs, int64_t span_ms, uint64_t count)
{
    *forecasts = (struct made_forecasts){ .gap_ms = span_ms / (int64_t)count, .last_ms = -span_ms };
    calibration_init(&forecasts->calibration);
    forecasts->row_of = xcalloc(n_jobs + 1, sizeof(*forecasts->row_of));
}

static void add(struct made_forecasts *forecasts, uint32_t job, int64_t now_ms, int64_t start_ms)
{
    if (forecasts->count == forecasts->room) {
        forecasts->room = forecasts->room > 0 ? 2 * forecasts->room : 256;
        forecasts->rows = xreallocarray(forecasts->rows, forecasts->room, sizeof(*forecasts->rows));
    }
    struct made_forecast *row = &forecasts->rows[forecasts->count++];
    *row =
        (struct made_forecast){ .job = job, .at_ms = now_ms, .wait_ms = start_ms - now_ms, .actual_ms = -1 };
    calibration_quantiles(&forecasts->calibration, row->wait_ms, row->parts_ms);
    forecasts->row_of[job] = (uint32_t)forecasts->count;
}

/* Of the rows from `first` on, which are of one run. */
static void count_alike(struct made_forecasts *forecasts, size_t first)
{
    uint32_t alike[CALIBRATION_RANGES] = { 0 };
    for (size_t i = first; i < forecasts->count; i++)
        alike[calibration_range(forecasts->rows[i].wait_ms)]++;
    for (size_t i = first; i < forecasts->count; i++)
        forecasts->rows[i].alike = alike[calibration_range(forecasts->rows[i].wait_ms)];
}

void made_forecasts_add(
    struct made_forecasts *forecasts, const struct sched *sched, int64_t now_ms, uint32_t n_submitted)
{
    struct forecast forecast;
    size_t first = forecasts->count;
    if (now_ms - forecasts->last_ms < forecasts->gap_ms || n_submitted == forecasts->next_job)
        return;
    forecast_run(sched, now_ms, FORECAST_JOBS, 0, false, &forecast);
    for (size_t i = 0; i < forecast.n_rows; i++) {
        const struct forecast_row *row = &forecast.rows[i];
        if (row->job > forecasts->next_job && forecasts->row_of[row->job - 1] == 0)
            add(forecasts, (uint32_t)(row->job - 1), now_ms, row->start_ms);
    }
    forecast_clear(&forecast);
    count_alike(forecasts, first);
    forecasts->last_ms = now_ms;
    forecasts->next_job = n_submitted;
}

void made_forecasts_start(struct made_forecasts *forecasts, uint32_t job, int64_t now_ms)
{
    if (forecasts->row_of[job] == 0)
        return;
    struct made_forecast *row = &forecasts->rows[forecasts->row_of[job] - 1];
    if (row->actual_ms >= 0)
        return;
    row->actual_ms = now_ms - row->at_ms;
    calibration_learn(&forecasts->calibration, row->wait_ms, row->parts_ms, row->alike, row->actual_ms);
}

void made_forecasts_measure(const struct made_forecasts *forecasts, struct forecast_metrics *ret)
{
    struct samples widths = { 0 }, errors = { 0 };
    struct summary summary;
    *ret = (struct forecast_metrics){ 0 };
    for (size_t i = 0; i < forecasts->count; i++) {
        const struct made_forecast *row = &forecasts->rows[i];
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

void made_forecasts_clear(struct made_forecasts *forecasts)
{
    free(forecasts->rows);
    free(forecasts->row_of);
    *forecasts = (struct made_forecasts){ 0 };
}

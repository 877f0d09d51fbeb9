/* SPDX-License-Identifier: MIT */
/*
 * Keeps the forecast made for each waiting job soon after its submission, and learns from the job's start how
 * accurate forecasts are (sched/calibration.c). One run of the scheduler on a copy serves all jobs submitted
 * since the last one; the larger the cluster, the longer the time between two runs, and a long run is made in
 * parts. Jobs that start before its end have no forecast. The last FORECASTS_KEPT are kept in a ring, with a
 * row of the store for each, so memory and store are bounded. No decision depends on them.
 */
#include "controller/core/forecasts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/record.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define KIND            "forecast"
#define KEY_CALIBRATION "calibration"
#define TELL_MS         1000  // delay after a submission: more may follow
#define GAP_MS          10000 // minimum time between two runs, and
#define GAP_JOB_MS      10    // for each job of the copy: less than a hundredth of the time is spent on runs
#define COPY_MAX        1000U // waiting jobs in the copy
#define COPY_LARGE      64U   // jobs; a run on a larger copy is made in parts
#define PART_STEPS      16U   // of the run
#define PART_GAP_MS     2     // between two parts

struct core_forecasts {
    struct calibration calibration;
    struct kept_forecast rows[FORECASTS_KEPT]; // a ring
    uint64_t n_made;                           // the next one is in slot n_told % FORECASTS_KEPT
    size_t n_open;                             // of jobs that have not started
    uint64_t last_job;                         // jobs up to this one get no more forecasts
    int64_t due_ms;                            // boot clock; TIME_NEVER: no job was submitted
    int64_t not_before_ms;                     // boot clock
    struct forecast_run *run;                  // in progress; NULL: none
    bool is_run_large;
    uint64_t run_job; // the last job when the run began
};

static bool is_open(const struct kept_forecast *row)
{
    return row->job != 0 && row->started_ms == 0;
}

/* --- rows of the store --- */

/* A row with its number, which determines its slot and which rows are newer. */
struct row_state {
    struct kept_forecast kept;
    uint64_t number;
};

static const struct record_field row_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct row_state, kept.job, 0),
    RECORD_FIELD(2, RECORD_TIME, struct row_state, kept.made_ms, 0),
    RECORD_FIELD(3, RECORD_TIME, struct row_state, kept.expected_ms, 0),
    RECORD_FIELD(4, RECORD_TIME, struct row_state, kept.parts_ms[0], 0),
    RECORD_FIELD(5, RECORD_TIME, struct row_state, kept.parts_ms[1], 0),
    RECORD_FIELD(6, RECORD_TIME, struct row_state, kept.parts_ms[2], 0),
    RECORD_FIELD(7, RECORD_TIME, struct row_state, kept.parts_ms[3], 0),
    RECORD_FIELD(8, RECORD_TIME, struct row_state, kept.parts_ms[4], 0),
    RECORD_FIELD(9, RECORD_TIME, struct row_state, kept.started_ms, 0),
    RECORD_FIELD(10, RECORD_U32, struct row_state, kept.alike, 0),
    RECORD_FIELD(11, RECORD_U64, struct row_state, number, 0),
};

static_assert(CALIBRATION_PARTS == 5, "a field for each part");

static const struct record_type row_record = RECORD_TYPE(541, "forecast", struct row_state, row_fields);

static void keep_row(struct core *core, size_t slot)
{
    struct core_forecasts *forecasts = core->forecasts;
    uint64_t newest = forecasts->n_made - 1;
    uint64_t behind = (newest % FORECASTS_KEPT + FORECASTS_KEPT - slot) % FORECASTS_KEPT;
    const struct row_state state = { .kept = forecasts->rows[slot], .number = newest - behind };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    (void)snprintf(key, sizeof(key), "%zu", slot);
    record_encode(&row_record, &state, &bytes);
    store_batch_put(core_batch(core)->changes, KIND, key, &bytes);
}

static void keep_calibration(struct core *core)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    calibration_encode(&core->forecasts->calibration, &bytes);
    store_batch_put(core_batch(core)->changes, KIND, KEY_CALIBRATION, &bytes);
}

/* Rows are optional: damaged ones are dropped. */
static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct core_forecasts *forecasts = core->forecasts;
    struct row_state state;
    int64_t slot = 0;
    if (strcmp(key, KEY_CALIBRATION) == 0) {
        (void)calibration_decode(&forecasts->calibration, bytes, length, err);
        return 0;
    }
    if (parse_integer(key, "forecast", 0, FORECASTS_KEPT - 1, &slot, err) < 0 ||
        record_decode(&row_record, bytes, length, &state, err) < 0 ||
        state.number % FORECASTS_KEPT != (uint64_t)slot)
        return 0;
    forecasts->rows[slot] = state.kept;
    forecasts->n_open += is_open(&state.kept);
    if (state.number >= forecasts->n_made)
        forecasts->n_made = state.number + 1;
    return 0;
}

/* --- telling --- */

/* The slot of its open forecast; FORECASTS_KEPT if it has none. */
static size_t find(const struct core_forecasts *forecasts, uint64_t job)
{
    size_t slot = 0;
    while (
        slot < FORECASTS_KEPT && (forecasts->rows[slot].job != job || forecasts->rows[slot].started_ms != 0))
        slot++;
    return slot;
}

static void record_forecast(struct core *core, uint64_t job, int64_t start_ms, uint32_t alike)
{
    struct core_forecasts *forecasts = core->forecasts;
    size_t slot = forecasts->n_made % FORECASTS_KEPT;
    struct kept_forecast *row = &forecasts->rows[slot];
    forecasts->n_open -= is_open(row);
    *row = (struct kept_forecast){
        .job = job, .made_ms = core->now_ms, .expected_ms = start_ms, .alike = alike
    };
    calibration_quantiles(&forecasts->calibration, start_ms - core->now_ms, row->parts_ms);
    for (size_t i = 0; i < CALIBRATION_PARTS; i++)
        row->parts_ms[i] += core->now_ms;
    forecasts->n_open++;
    forecasts->n_made++;
    keep_row(core, slot);
}

/* True if it has had no forecast yet, is still waiting, and is not an element that the forecast has started.
 * An array starts more than once: its first start counts. */
static bool is_news(const struct core *core, const struct forecast *forecast, size_t i)
{
    uint64_t job = forecast->rows[i].job;
    if (job <= core->forecasts->last_job || job > core->forecasts->run_job)
        return false;
    const struct core_entry *entry = core_find(core, job);
    return entry != NULL && entry->job->state == JOB_QUEUED &&
           forecast_row(forecast, job) == &forecast->rows[i];
}

static void record_all(struct core *core, const struct forecast *forecast)
{
    uint32_t alike[CALIBRATION_RANGES] = { 0 };
    for (size_t i = 0; i < forecast->n_rows; i++)
        alike[calibration_range(forecast->rows[i].start_ms - core->now_ms)] += is_news(core, forecast, i);
    for (size_t i = 0; i < forecast->n_rows; i++) {
        const struct forecast_row *row = &forecast->rows[i];
        if (is_news(core, forecast, i))
            record_forecast(
                core, row->job, row->start_ms, alike[calibration_range(row->start_ms - core->now_ms)]);
    }
}

static size_t size_of_copy(const struct core *core)
{
    size_t waiting = sched_queue(core->sched)->length, running = 0;
    for (const struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after)
        running++;
    return running + (waiting < COPY_MAX ? waiting : COPY_MAX);
}

static void begin_run(struct core *core)
{
    struct core_forecasts *forecasts = core->forecasts;
    size_t size = size_of_copy(core);
    forecasts->run = forecast_begin(core->sched, core->now_ms, COPY_MAX, 0, false);
    forecasts->is_run_large = size > COPY_LARGE;
    forecasts->run_job = core->last_job;
    forecasts->not_before_ms = core->boot_ms + GAP_MS + GAP_JOB_MS * (int64_t)size;
}

static void plan(struct core_forecasts *forecasts, int64_t boot_ms)
{
    int64_t soon_ms = boot_ms + TELL_MS;
    forecasts->due_ms = soon_ms > forecasts->not_before_ms ? soon_ms : forecasts->not_before_ms;
}

/* False if there is more to do. */
static bool advance_run(struct core *core)
{
    struct core_forecasts *forecasts = core->forecasts;
    struct forecast forecast;
    if (!forecast_advance(forecasts->run, forecasts->is_run_large ? PART_STEPS : SIZE_MAX))
        return false;
    forecast_end(take_ptr(forecasts->run), &forecast);
    record_all(core, &forecast);
    forecast_clear(&forecast);
    forecasts->last_job = forecasts->run_job;
    return true;
}

static void run(struct core *core)
{
    struct core_forecasts *forecasts = core->forecasts;
    if (forecasts->due_ms > core->boot_ms)
        return;
    forecasts->due_ms = TIME_NEVER;
    bool is_new = forecasts->run == NULL;
    if (is_new && sched_queue(core->sched)->length == 0) {
        forecasts->last_job = core->last_job;
        return;
    }
    if (is_new)
        begin_run(core);
    if ((is_new && forecasts->is_run_large) || !advance_run(core))
        forecasts->due_ms = core->boot_ms + PART_GAP_MS;
    else if (core->last_job > forecasts->last_job) // submitted meanwhile
        plan(forecasts, core->boot_ms);
}

static int64_t next_ms(const struct core *core)
{
    return core->forecasts->due_ms;
}

/* --- what becomes of them --- */

/* The predicted times, relative to the time of the forecast. */
static const int64_t *waits(const struct kept_forecast *row, int64_t ret_ms[CALIBRATION_PARTS])
{
    for (size_t i = 0; i < CALIBRATION_PARTS; i++)
        ret_ms[i] = row->parts_ms[i] - row->made_ms;
    return ret_ms;
}

static void close_forecast(struct core *core, uint64_t job, bool has_started)
{
    struct core_forecasts *forecasts = core->forecasts;
    size_t slot = forecasts->n_open > 0 ? find(forecasts, job) : FORECASTS_KEPT;
    if (slot == FORECASTS_KEPT)
        return;
    struct kept_forecast *row = &forecasts->rows[slot];
    int64_t made_ms[CALIBRATION_PARTS];
    forecasts->n_open--;
    if (has_started) {
        row->started_ms = core->now_ms;
        calibration_learn(&forecasts->calibration, row->expected_ms - row->made_ms, waits(row, made_ms),
            row->alike, row->started_ms - row->made_ms);
        keep_calibration(core);
    } else {
        *row = (struct kept_forecast){ 0 };
    }
    keep_row(core, slot);
}

static void submitted(struct core *core)
{
    if (core->forecasts->due_ms == TIME_NEVER)
        plan(core->forecasts, core->boot_ms);
}

/* An array starts with its first element. Changes by its owner or an administrator do not count against the
 * forecast. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    uint64_t id = job->array_job != 0 ? job->array_job : job->id;
    switch (news->event->type) {
    case EVENT_SUBMITTED: submitted(core); break;
    case EVENT_ALLOCATED: close_forecast(core, id, true); break;
    case EVENT_EDITED:
    case EVENT_HELD: close_forecast(core, job->id, false); break;
    default: close_forecast(core, job->id, false);
    }
}

/* --- for the API --- */

const struct kept_forecast *core_kept_forecast(const struct core *core, size_t index)
{
    const struct core_forecasts *forecasts = core->forecasts;
    for (uint64_t i = 0; i < FORECASTS_KEPT && i < forecasts->n_made; i++) {
        const struct kept_forecast *row = &forecasts->rows[(forecasts->n_made - 1 - i) % FORECASTS_KEPT];
        if (row->job != 0 && index-- == 0)
            return row;
    }
    return NULL;
}

const struct calibration *core_calibration(const struct core *core)
{
    return &core->forecasts->calibration;
}

void core_eta_interval(const struct core *core, int64_t wall_ms, int64_t eta_ms, int64_t latest_ms,
    int64_t begin_ms, int64_t *ret_from_ms, int64_t *ret_until_ms)
{
    int64_t parts_ms[CALIBRATION_PARTS], now_ms = core_now_ms(core, wall_ms);
    *ret_from_ms = *ret_until_ms = 0;
    if (eta_ms == TIME_NEVER)
        return;
    calibration_quantiles(&core->forecasts->calibration, eta_ms - now_ms, parts_ms);
    *ret_from_ms = now_ms + parts_ms[0] > begin_ms ? now_ms + parts_ms[0] : begin_ms;
    *ret_until_ms = now_ms + parts_ms[CALIBRATION_PARTS - 1];
    *ret_until_ms = *ret_until_ms < latest_ms ? *ret_until_ms : latest_ms;
    *ret_from_ms = *ret_from_ms < *ret_until_ms ? *ret_from_ms : *ret_until_ms;
}

/* --- lifetime --- */

static void init(struct core *core)
{
    core->forecasts = xcalloc(1, sizeof(*core->forecasts));
    core->forecasts->due_ms = TIME_NEVER;
    calibration_init(&core->forecasts->calibration);
}

/* Jobs submitted before the start have had their forecasts. */
static void begin(struct core *core)
{
    core->forecasts->last_job = core->last_job;
}

static void clear(struct core *core)
{
    if (core->forecasts != NULL && core->forecasts->run != NULL)
        forecast_end(core->forecasts->run, NULL);
    free(take_ptr(core->forecasts));
}

static const struct core_kind kinds[] = {
    { .kind = KIND, .load = load },
    { 0 },
};

const struct core_concern core_concern_forecasts = {
    .name = "forecasts",
    .init = init,
    .free = clear,
    .kinds = kinds,
    .begin = begin,
    .events = CORE_ON(EVENT_SUBMITTED) | CORE_ON(EVENT_ALLOCATED) | CORE_ON(EVENT_EDITED) |
              CORE_ON(EVENT_HELD) | CORE_ON_DONE,
    .event = on_event,
    .next_ms = next_ms,
    .run = run,
};

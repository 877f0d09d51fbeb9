/* SPDX-License-Identifier: MIT */
/*
 * Hours of load: jobs that start and end, are killed, run out of memory, share a GPU and are parked, again
 * and again until the kit's time is up. After each of them it measures what mgpu takes of the machine. A
 * figure that grows is reported with its growth per hour; one that has no reason to grow fails the check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/figures.h"
#include "lab/kit/growth.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS       60000
#define ASK_MS       20000
#define END_MS       25000 // of the kit's time that the last job and the end of mgpud need
#define POINTS_MAX   4096U
#define HOUR_MS      3600000
#define GIB          (1LL << 30)
#define NUMBER       32
#define ELEMENTS     8
#define HOLD_PERCENT 12U // of the free memory of the GPU
#define HOLD_MIB     512

struct load {
    struct kit *kit;
    struct result *result;
    struct growth_point points[FIGURES][POINTS_MAX];
    size_t count;
    int64_t begin_ms, last_ms, interval_ms;
    long long jobs;
    bool can_park, can_share;
    json_t *hours; // array: all figures at the beginning of each hour, and at the end
};

/* Adds one to the jobs; false after result_fail(), if the job did not end as it must. */
static bool judge(struct load *load, json_t *record, const char *member, const char *wanted)
{
    bool is_right = text_equal(record_word(record, member), wanted);
    load->jobs++;
    if (record != NULL && !is_right)
        result_fail(load->result, "after %lld jobs one ended as %s (%s), not %s", load->jobs,
            record_word(record, "state"), record_word(record, "ended_by"), wanted);
    json_decref(record);
    return is_right;
}

/* --- jobs --- */

static bool start_and_end(struct load *load)
{
    static const char *const options[] = { "-a", "0-7", "-g", "1", NULL }, *const list[] = { "list", NULL };
    int64_t job = probe_submit(load->kit, options, list, load->result);
    load->jobs += ELEMENTS - 1;
    return job >= 0 && judge(load, probe_wait(load->kit, job, JOB_MS, load->result), "state", "done");
}

/* A job that holds memory, with more options. -1 after result_fail(). */
static int64_t start_holder(struct load *load, const char *const *options)
{
    char memory[PROBE_SIZE];
    probe_size(load->kit, HOLD_PERCENT, HOLD_MIB, memory);
    const char *const hold[] = { "hold", "-m", memory, "-s", "600", "--until-continued", NULL };
    return parking_start(load->kit, options, hold, 1, JOB_MS, load->result);
}

static bool kill_one(struct load *load)
{
    int64_t job = start_holder(load, parking_gpu);
    if (job < 0)
        return false;
    probe_cancel(load->kit, job);
    return judge(load, probe_wait(load->kit, job, JOB_MS, load->result), "state", "cancelled");
}

static bool run_out(struct load *load)
{
    const json_t *gpu = json_array_get(load->kit->nvml_gpus, load->kit->gpu);
    char memory[NUMBER];
    (void)snprintf(memory, sizeof(memory), "%lldG",
        (long long)(json_integer_value(json_object_get(gpu, "memory_bytes")) / GIB + 2));
    const char *const need[] = { "need", "-m", memory, NULL };
    int64_t job = probe_submit(load->kit, parking_gpu, need, load->result);
    return job >= 0 && judge(load, probe_wait(load->kit, job, JOB_MS, load->result), "ended_by", "gpu_oom");
}

/* Where a job cannot be parked, it is not tried again. */
static bool park_one(struct load *load)
{
    struct result attempt = { 0 };
    int64_t job = load->can_park ? start_holder(load, parking_gpu) : -1;
    if (job < 0)
        return !load->can_park;
    bool is_back = parking_cycle(load->kit, job, PARKING_MS, &attempt);
    load->can_park = is_back;
    if (!is_back)
        result_fact(load->result, "no_park", json_string(attempt.text));
    if (attempt.outcome == OUTCOME_FAILED)
        result_fail(load->result, "%s", attempt.text);
    json_decref(attempt.facts);
    parking_let_go(load->kit, job);
    return judge(load, probe_wait(load->kit, job, JOB_MS, load->result), "state", "done") &&
           attempt.outcome != OUTCOME_FAILED;
}

/* Two jobs on one GPU, under MPS where it can be had. */
static bool share_one(struct load *load)
{
    char share[PROBE_SIZE];
    probe_size(load->kit, HOLD_PERCENT * 2, HOLD_MIB * 2, share);
    const char *const options[] = { "-G", KIT_GPU, "-m", share, load->can_share ? "--share" : NULL, "mps",
        NULL };
    int64_t jobs[2] = { start_holder(load, options), start_holder(load, options) };
    bool is_right = true;
    for (size_t i = 0; i < 2; i++) {
        if (jobs[i] >= 0)
            parking_let_go(load->kit, jobs[i]);
        is_right = jobs[i] >= 0 &&
                   judge(load, probe_wait(load->kit, jobs[i], JOB_MS, load->result), "state", "done") &&
                   is_right;
    }
    return is_right;
}

static bool (*const parts[])(struct load *load) = { start_and_end, kill_one, run_out, park_one, share_one };
#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* --- what mgpu takes --- */

static void add_row(struct load *load, int64_t now_ms, const double values[FIGURES])
{
    json_t *row = json_pack(
        "{s:f, s:I}", "hours", (double)(now_ms - load->begin_ms) / HOUR_MS, "jobs", (json_int_t)load->jobs);
    for (size_t i = 0; i < FIGURES; i++)
        (void)json_object_set_new(
            row, figure_rows[i].name, values[i] < 0 ? json_null() : json_integer((json_int_t)values[i]));
    (void)json_array_append_new(load->hours, row);
}

static void measure(struct load *load, bool is_last)
{
    double values[FIGURES];
    int64_t now_ms = clock_boot_ms();
    int64_t hour = (now_ms - load->begin_ms) / HOUR_MS,
            last_hour = (load->last_ms - load->begin_ms) / HOUR_MS;
    if (!is_last && load->count > 0 && now_ms < load->last_ms + load->interval_ms)
        return;
    figures_read(load->kit, values);
    if (is_last || load->count == 0 || hour > last_hour)
        add_row(load, now_ms, values);
    load->last_ms = now_ms;
    if (load->count == POINTS_MAX)
        return;
    for (size_t i = 0; i < FIGURES; i++)
        load->points[i][load->count] = (struct growth_point){ now_ms, values[i] };
    load->count++;
}

/* Writes what grows; true if a figure does that must not. */
static bool describe_growth(const struct load *load, struct buffer *text)
{
    json_t *all = json_object();
    bool is_fault = false;
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure_row *row = &figure_rows[i];
        if (load->count == 0 || load->points[i][0].value < 0)
            continue;
        struct growth growth = growth_judge(load->points[i], load->count, row->noise);
        (void)json_object_set_new(all, row->name,
            json_pack("{s:f, s:b}", "per_hour", growth.per_hour, "grows", (int)growth.is_growing));
        if (growth.is_growing)
            buffer_printf(
                text, "%s %.0f %s", text->length > 0 ? "," : "; per hour more:", growth.per_hour, row->words);
        is_fault |= growth.is_growing && row->is_counted;
    }
    result_fact(load->result, "growth", all);
    return is_fault;
}

static void judge_load(struct load *load)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    bool is_fault = describe_growth(load, &text);
    double hours = (double)(clock_boot_ms() - load->begin_ms) / HOUR_MS;
    const char *grows = text.length > 0 ? buffer_text(&text) : "; nothing grew";
    if (load->count < GROWTH_LEAST)
        result_skip(load->result, "there was time for only %lld jobs: give more with -t", load->jobs);
    else if (is_fault)
        result_fail(load->result, "%lld jobs in %.2f hours%s", load->jobs, hours, grows);
    else
        result_pass(load->result, "%lld jobs in %.2f hours%s", load->jobs, hours, grows);
}

static bool can_share_by_mps(struct kit *kit)
{
    static const char *const dry[] = { "submit", "-G", KIT_GPU, "-m", "64M", "--share", "mps", "--dry-run",
        "true", NULL };
    struct error err = { 0 };
    return instance_ask(kit, dry, ASK_MS, NULL, &err) == 0;
}

static void check_load(struct kit *kit, struct result *result)
{
    struct load *load = xcalloc(1, sizeof(*load));
    int64_t now_ms = clock_boot_ms();
    *load = (struct load){ .kit = kit,
        .result = result,
        .begin_ms = now_ms,
        .last_ms = now_ms,
        .interval_ms = (kit->end_ms - now_ms) / POINTS_MAX,
        .can_park = kit->no_park == NULL,
        .can_share = can_share_by_mps(kit),
        .hours = json_array() };
    bool is_right = true;
    for (size_t i = 0; is_right && kit_left_ms(kit, INT64_MAX) > END_MS; i++) {
        is_right = parts[i % PARTS](load);
        measure(load, false);
    }
    measure(load, true);
    result_fact(result, "jobs", json_integer(load->jobs));
    result_fact(result, "parked", json_boolean(load->can_park));
    result_fact(result, "shared_by_mps", json_boolean(load->can_share));
    result_fact(result, "hours", load->hours);
    if (is_right)
        judge_load(load);
    free(load);
}

const struct check kit_load_checks[] = {
    { "load", "jobs for as long as the kit's time lasts", 20000, NEED_JOBS, check_load, RANK_ASKED },
    { 0 },
};

/* SPDX-License-Identifier: MIT */
/* One loop over the results; sums are added in order of submission, so that the last digit is
 * reproducible. */
#include "lab/sim/metrics.h"

#include <stdlib.h>

#include "base/memory.h"

struct width {
    const char *name;
    uint32_t least, most;
};

static const struct width width_rows[WIDTHS] = {
    { "1", 1, 1 },
    { "2-4", 2, 4 },
    { "8", 8, 8 },
    { ">8", 9, UINT32_MAX },
};

/* Lists that become summaries. */
struct lists {
    struct samples jct, wait, slowdown, error;
    struct samples width_jct[WIDTHS], width_wait[WIDTHS];
    double *user_slowdown; // sums
    uint32_t *user_jobs;
};

static void add_job(struct lists *lists, const struct sim_job *job, const struct job_result *result)
{
    double jct_s = (double)(result->end_ms - job->submit_ms) / 1000, wait_s = (double)result->wait_ms / 1000;
    double duration_s = (double)job->duration_ms / 1000;
    double slowdown = jct_s / (duration_s > SLOWDOWN_FLOOR_S ? duration_s : SLOWDOWN_FLOOR_S);
    slowdown = slowdown > 1 ? slowdown : 1;
    samples_add(&lists->jct, jct_s);
    samples_add(&lists->wait, wait_s);
    samples_add(&lists->slowdown, slowdown);
    lists->user_slowdown[job->user] += slowdown;
    lists->user_jobs[job->user]++;
    for (size_t i = 0; i < WIDTHS; i++) {
        if (job->gpus < width_rows[i].least || job->gpus > width_rows[i].most)
            continue;
        samples_add(&lists->width_jct[i], jct_s);
        samples_add(&lists->width_wait[i], wait_s);
    }
    if (result->estimate_ms > 0 && job->duration_ms > 0) {
        double ratio = (double)result->estimate_ms / (double)job->duration_ms;
        samples_add(&lists->error, ratio >= 1 ? ratio : 1 / ratio);
    }
}

/* Jain's index of the users' mean slowdowns: 1 when all are alike, 1/n when one has it all. */
static void compare_users(const struct lists *lists, const struct workload *workload, struct metrics *ret)
{
    double sum = 0, squares = 0;
    for (size_t user = 0; user < workload->users.count; user++) {
        if (lists->user_jobs[user] == 0)
            continue;
        double mean = lists->user_slowdown[user] / lists->user_jobs[user];
        sum += mean;
        squares += mean * mean;
        ret->users++;
        if (mean > ret->worst_user_slowdown) {
            ret->worst_user_slowdown = mean;
            ret->worst_user = workload->users.items[user];
        }
    }
    ret->jain = squares > 0 ? sum * sum / ((double)ret->users * squares) : 1;
}

static void summarize(struct lists *lists, struct metrics *ret)
{
    samples_summarize(&lists->jct, &ret->jct_s);
    samples_summarize(&lists->wait, &ret->wait_s);
    samples_summarize(&lists->slowdown, &ret->slowdown);
    samples_summarize(&lists->error, &ret->estimate_error);
    for (size_t i = 0; i < WIDTHS; i++) {
        ret->widths[i].name = width_rows[i].name;
        samples_summarize(&lists->width_jct[i], &ret->widths[i].jct_s);
        samples_summarize(&lists->width_wait[i], &ret->widths[i].wait_s);
        ret->widths[i].jobs = ret->widths[i].jct_s.count;
    }
}

static void lists_clear(struct lists *lists)
{
    samples_clear(&lists->jct);
    samples_clear(&lists->wait);
    samples_clear(&lists->slowdown);
    samples_clear(&lists->error);
    for (size_t i = 0; i < WIDTHS; i++) {
        samples_clear(&lists->width_jct[i]);
        samples_clear(&lists->width_wait[i]);
    }
    free(lists->user_slowdown);
    free(lists->user_jobs);
}

static void measure_machine(struct engine *engine, struct metrics *ret)
{
    samples_summarize(&engine->pass_ns, &ret->pass_us);
    double *const values[] = { &ret->pass_us.mean, &ret->pass_us.median, &ret->pass_us.p90, &ret->pass_us.p99,
        &ret->pass_us.max };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
        *values[i] /= 1000;
    ret->scheduler_s = engine->sched_s;
    ret->wall_s = engine->wall_s;
    ret->peak_memory_bytes = engine->peak_memory_bytes;
}

void metrics_make(struct engine *engine, struct metrics *ret)
{
    const struct workload *workload = engine->workload;
    struct lists lists = { .user_slowdown = xcalloc(workload->users.count + 1, sizeof(double)),
        .user_jobs = xcalloc(workload->users.count + 1, sizeof(uint32_t)) };
    *ret = (struct metrics){ .refused = engine->n_refused,
        .preemptions = engine->n_preemptions,
        .parks = engine->options.parking.is_auto ? engine->parking.n_parks : 0,
        .reclaims = engine->n_reclaims,
        .most_parked = engine->most_parked,
        .interruptions = engine->n_interruptions };
    int64_t first_ms = -1, last_end_ms = 0, last_submit_ms = 0;
    for (size_t i = 0; i < workload->n_jobs; i++) {
        const struct job_result *result = &engine->results[i];
        last_submit_ms = workload->jobs[i].submit_ms;
        if (result->end_ms < 0)
            continue;
        add_job(&lists, &workload->jobs[i], result);
        first_ms = first_ms < 0 ? workload->jobs[i].submit_ms : first_ms;
        last_end_ms = result->end_ms > last_end_ms ? result->end_ms : last_end_ms;
        ret->jobs++;
    }
    ret->makespan_s = ret->jobs > 0 ? (double)(last_end_ms - first_ms) / 1000 : 0;
    if (last_submit_ms > 0 && engine->nodes->gpus > 0)
        ret->utilization = engine->busy_until_last / (double)engine->nodes->gpus / (double)last_submit_ms;
    ret->lost_gpu_s = engine->lost_gpu_ms / 1000;
    compare_users(&lists, workload, ret);
    ret->waiting_s = engine->waiting_ms / 1000;
    if (engine->waiting_ms > 0) {
        ret->free_gpus = engine->free_while_waiting / engine->waiting_ms;
        ret->free_percent = engine->nodes->gpus > 0 ? 100 * ret->free_gpus / (double)engine->nodes->gpus : 0;
        ret->largest_gang = engine->gang_while_waiting / engine->waiting_ms;
    }
    summarize(&lists, ret);
    if (engine->options.forecasts > 0)
        made_forecasts_measure(&engine->made, &ret->forecasts);
    measure_machine(engine, ret);
    lists_clear(&lists);
}

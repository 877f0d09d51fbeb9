/* SPDX-License-Identifier: MIT */
/*
 * All measures are computed from jobs with weights: how often the block of a job was drawn. With every weight
 * 1 they are those of the replay itself.
 */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "lab/sim/metrics.h"
#include "lab/sim/random.h"
#include "lab/sim/tune/tune.h"

#define DAY_MS     (24.0 * 3600 * 1000)
#define BLOCKS_MIN 10U
#define BLOCKS_MAX 60U
#define RESAMPLES  400U
#define TAIL       0.05 // on either side of the interval
#define FLOOR_S    1.0  // added to waits before they are divided: a second more or less is no difference

const char *const tune_measure_names[TUNE_MEASURES] = {
    [TUNE_AVERAGE] = "average wait",
    [TUNE_P99] = "p99 wait",
    [TUNE_WIDE] = "wide jobs' wait",
    [TUNE_WORST_USER] = "worst user",
};

/* A job of the workload that ran under every variant. */
struct sample {
    uint32_t user, block;
    bool is_wide;
};

struct comparing {
    struct sample *samples;
    size_t count, n_users, n_variants;
    /* Of each variant, for each sample. */
    double *waits[TUNE_VARIANTS_MAX]; // seconds
    double *slowdowns[TUNE_VARIANTS_MAX];
    uint32_t *by_wait[TUNE_VARIANTS_MAX]; // samples, the longest wait first
    double *user_sum, *user_weight;
};

/* --- samples --- */

static uint32_t count_blocks(int64_t span_ms)
{
    double days = floor((double)span_ms / DAY_MS);
    return days < BLOCKS_MIN ? BLOCKS_MIN : days > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)days;
}

static uint32_t widest_node(const struct sim_nodes *nodes)
{
    uint32_t most = 0;
    for (size_t i = 0; i < nodes->count; i++)
        most = nodes->items[i].gpus > most ? nodes->items[i].gpus : most;
    return most;
}

static bool ran_everywhere(struct tune_outcome *const *outcomes, size_t n_variants, size_t job)
{
    for (size_t v = 0; v < n_variants; v++)
        if (outcomes[v]->jobs[job].end_ms < 0)
            return false;
    return true;
}

static void take_samples(struct comparing *comparing, const struct workload *workload,
    struct tune_outcome *const *outcomes, const struct tune_comparison *ret)
{
    comparing->samples = xcalloc(workload->n_jobs + 1, sizeof(*comparing->samples));
    for (size_t v = 0; v < comparing->n_variants; v++) {
        comparing->waits[v] = xcalloc(workload->n_jobs + 1, sizeof(double));
        comparing->slowdowns[v] = xcalloc(workload->n_jobs + 1, sizeof(double));
    }
    for (size_t i = 0; i < workload->n_jobs; i++) {
        const struct sim_job *job = &workload->jobs[i];
        if (!ran_everywhere(outcomes, comparing->n_variants, i))
            continue;
        size_t at = comparing->count++;
        double duration_s = (double)job->duration_ms / 1000;
        double least_s = duration_s > SLOWDOWN_FLOOR_S ? duration_s : SLOWDOWN_FLOOR_S;
        double block = (double)job->submit_ms / (double)(ret->span_ms + 1) * (double)ret->n_blocks;
        comparing->samples[at] = (struct sample){
            .user = job->user, .block = (uint32_t)block, .is_wide = job->gpus >= ret->wide_gpus
        };
        for (size_t v = 0; v < comparing->n_variants; v++) {
            const struct tune_job *outcome = &outcomes[v]->jobs[i];
            double slowdown = (double)(outcome->end_ms - job->submit_ms) / 1000 / least_s;
            comparing->waits[v][at] = (double)outcome->wait_ms / 1000;
            comparing->slowdowns[v][at] = slowdown > 1 ? slowdown : 1;
        }
    }
}

static int longest_first(const void *a, const void *b, void *arg)
{
    const double *waits = arg;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    if (waits[left] != waits[right])
        return waits[left] > waits[right] ? -1 : 1;
    return left < right ? -1 : left > right;
}

static void sort_samples(struct comparing *comparing)
{
    for (size_t v = 0; v < comparing->n_variants; v++) {
        comparing->by_wait[v] = xcalloc(comparing->count + 1, sizeof(uint32_t));
        for (size_t i = 0; i < comparing->count; i++)
            comparing->by_wait[v][i] = (uint32_t)i;
        qsort_r(
            comparing->by_wait[v], comparing->count, sizeof(uint32_t), longest_first, comparing->waits[v]);
    }
}

/* --- measures --- */

static double mean_wait(
    const struct comparing *comparing, const uint32_t *weights, size_t variant, bool is_wide)
{
    double sum = 0, total = 0;
    for (size_t i = 0; i < comparing->count; i++) {
        const struct sample *sample = &comparing->samples[i];
        if (is_wide && !sample->is_wide)
            continue;
        sum += weights[sample->block] * comparing->waits[variant][i];
        total += weights[sample->block];
    }
    return total > 0 ? sum / total : 0;
}

static double p99_wait(const struct comparing *comparing, const uint32_t *weights, size_t variant)
{
    double total = 0, seen = 0;
    for (size_t i = 0; i < comparing->count; i++)
        total += weights[comparing->samples[i].block];
    for (size_t i = 0; i < comparing->count; i++) {
        uint32_t sample = comparing->by_wait[variant][i];
        seen += weights[comparing->samples[sample].block];
        if (seen > total / 100)
            return comparing->waits[variant][sample];
    }
    return 0;
}

static double worst_user(struct comparing *comparing, const uint32_t *weights, size_t variant)
{
    double worst = 1;
    for (size_t user = 0; user < comparing->n_users; user++)
        comparing->user_sum[user] = comparing->user_weight[user] = 0;
    for (size_t i = 0; i < comparing->count; i++) {
        const struct sample *sample = &comparing->samples[i];
        comparing->user_sum[sample->user] += weights[sample->block] * comparing->slowdowns[variant][i];
        comparing->user_weight[sample->user] += weights[sample->block];
    }
    for (size_t user = 0; user < comparing->n_users; user++)
        if (comparing->user_weight[user] > 0 &&
            comparing->user_sum[user] / comparing->user_weight[user] > worst)
            worst = comparing->user_sum[user] / comparing->user_weight[user];
    return worst;
}

static void measure(
    struct comparing *comparing, const uint32_t *weights, size_t variant, double ret[TUNE_MEASURES])
{
    ret[TUNE_AVERAGE] = mean_wait(comparing, weights, variant, false);
    ret[TUNE_P99] = p99_wait(comparing, weights, variant);
    ret[TUNE_WIDE] = mean_wait(comparing, weights, variant, true);
    ret[TUNE_WORST_USER] = worst_user(comparing, weights, variant);
}

static double ratio_of(enum tune_measure measure, double value, double now)
{
    double floor_s = measure == TUNE_WORST_USER ? 0 : FLOOR_S;
    return (value + floor_s) / (now + floor_s);
}

/* --- intervals --- */

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void draw_weights(struct random *random, uint32_t n_blocks, uint32_t *weights)
{
    for (uint32_t i = 0; i < n_blocks; i++)
        weights[i] = 0;
    for (uint32_t i = 0; i < n_blocks; i++)
        weights[random_below(random, n_blocks)]++;
}

static void resample(struct comparing *comparing, uint64_t seed, struct tune_comparison *ret)
{
    struct random random = { seed };
    double(*ratios)[TUNE_MEASURES][RESAMPLES] = xcalloc(comparing->n_variants, sizeof(*ratios));
    for (size_t i = 0; i < RESAMPLES; i++) {
        uint32_t weights[BLOCKS_MAX];
        double now[TUNE_MEASURES] = { 0 };
        draw_weights(&random, (uint32_t)ret->n_blocks, weights);
        for (size_t v = 0; v < comparing->n_variants; v++) {
            double values[TUNE_MEASURES];
            measure(comparing, weights, v, values);
            for (enum tune_measure m = 0; m < TUNE_MEASURES; m++) {
                now[m] = v == 0 ? values[m] : now[m];
                ratios[v][m][i] = ratio_of(m, values[m], now[m]);
            }
        }
    }
    for (size_t v = 0; v < comparing->n_variants; v++)
        for (enum tune_measure m = 0; m < TUNE_MEASURES; m++) {
            struct tune_ratio *ratio = &ret->results[v].ratios[m];
            qsort(ratios[v][m], RESAMPLES, sizeof(double), by_value);
            ratio->low = ratios[v][m][(size_t)(TAIL * RESAMPLES)];
            ratio->high = ratios[v][m][(size_t)((1 - TAIL) * RESAMPLES)];
        }
    free(ratios);
}

int tune_verdict(const struct tune_ratio *ratio)
{
    return ratio->high < 1 ? 1 : ratio->low > 1 ? -1 : 0;
}

static void fill_results(struct comparing *comparing, const struct workload *workload,
    struct tune_outcome *const *outcomes, struct tune_comparison *ret)
{
    uint32_t ones[BLOCKS_MAX];
    for (size_t i = 0; i < BLOCKS_MAX; i++)
        ones[i] = 1;
    for (size_t v = 0; v < comparing->n_variants; v++) {
        struct tune_result *result = &ret->results[v];
        measure(comparing, ones, v, result->values);
        for (enum tune_measure m = 0; m < TUNE_MEASURES; m++)
            result->ratios[m].value = ratio_of(m, result->values[m], ret->results[0].values[m]);
        result->idle_gpus = outcomes[v]->idle_gpus;
        result->refused = workload->n_jobs - comparing->count;
    }
}

void tune_compare(const struct workload *workload, const struct sim_nodes *nodes,
    struct tune_outcome *const *outcomes, size_t n_variants, uint64_t seed, struct tune_comparison *ret)
{
    struct comparing comparing = { .n_users = workload->users.count, .n_variants = n_variants };
    *ret = (struct tune_comparison){ .n_variants = n_variants, .n_users = workload->users.count };
    ret->span_ms = workload->jobs[workload->n_jobs - 1].submit_ms;
    ret->n_blocks = count_blocks(ret->span_ms);
    ret->wide_gpus = (widest_node(nodes) + 1) / 2;
    ret->wide_gpus = ret->wide_gpus > 2 ? ret->wide_gpus : 2;
    take_samples(&comparing, workload, outcomes, ret);
    sort_samples(&comparing);
    comparing.user_sum = xcalloc(comparing.n_users + 1, sizeof(double));
    comparing.user_weight = xcalloc(comparing.n_users + 1, sizeof(double));
    ret->n_jobs = comparing.count;
    for (size_t i = 0; i < comparing.count; i++)
        ret->n_wide += comparing.samples[i].is_wide;
    fill_results(&comparing, workload, outcomes, ret);
    resample(&comparing, seed, ret);
    for (size_t v = 0; v < n_variants; v++) {
        free(comparing.by_wait[v]);
        free(comparing.waits[v]);
        free(comparing.slowdowns[v]);
    }
    free(comparing.samples);
    free(comparing.user_sum);
    free(comparing.user_weight);
}

/* SPDX-License-Identifier: MIT */
/*
 * Durations of jobs spread over many orders of magnitude, so bins of equal ratio determine a mean, a median
 * and other quantiles to within a fifth, with little memory. Weights are integers, so that storing them loses
 * nothing. Durations are assumed to be evenly distributed within a bin.
 */
#include "sched/history/history_cell.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define FIRST_MS       8000.0
#define HALF_OCTAVE    1.4142135623730951
#define BEYOND_LIMIT   0.01 // factor for durations beyond the limit: limits are raised, ends detected late
#define LIMIT_SLACK    1.1
#define NEARLY_NOTHING 1e-12

/* Where the two bins of an octave begin. */
#define OCTAVE(k) FIRST_MS *(1ULL << (k)), FIRST_MS *(1ULL << (k)) * HALF_OCTAVE

/* Where each bin begins, and the last one ends. */
static const double edges_ms[] = { 0, FIRST_MS *HALF_OCTAVE, OCTAVE(1), OCTAVE(2), OCTAVE(3), OCTAVE(4),
    OCTAVE(5), OCTAVE(6), OCTAVE(7), OCTAVE(8), OCTAVE(9), OCTAVE(10), OCTAVE(11), OCTAVE(12), OCTAVE(13),
    OCTAVE(14), OCTAVE(15), OCTAVE(16), OCTAVE(17), OCTAVE(18), OCTAVE(19), OCTAVE(20),
    FIRST_MS *(1ULL << 21) };

static_assert(sizeof(edges_ms) / sizeof(edges_ms[0]) == RUN_BINS + 1, "one edge more than bins");

unsigned run_bin_of(int64_t ms)
{
    if (ms < (int64_t)FIRST_MS)
        return 0;
    unsigned octave = 63U - (unsigned)__builtin_clzll((uint64_t)ms / (uint64_t)FIRST_MS), bin = 2 * octave;
    if (bin >= RUN_BINS)
        return RUN_BINS - 1;
    return bin + ((double)ms >= edges_ms[bin + 1]);
}

int64_t run_bin_start_ms(unsigned bin)
{
    return (int64_t)ceil(edges_ms[bin]);
}

void run_histogram_add(struct run_histogram *histogram, int64_t run_ms, uint32_t weight)
{
    const uint64_t most = (uint64_t)RUN_FADE * RUN_UNIT;
    for (size_t i = 0; i < RUN_BINS; i++) // rounded up, so that small weights finally vanish
        histogram->weights[i] -= (uint32_t)(((uint64_t)histogram->weights[i] * weight + most - 1) / most);
    histogram->weights[run_bin_of(run_ms)] += weight;
}

void run_belief_scale(struct run_belief *belief)
{
    double sum = 0;
    for (size_t i = 0; i < RUN_BINS; i++)
        sum += belief->parts[i];
    for (size_t i = 0; i < RUN_BINS; i++)
        belief->parts[i] = sum > 0 ? belief->parts[i] / sum : 1.0 / RUN_BINS;
}

void run_belief_init(struct run_belief *belief, int64_t usual_ms)
{
    unsigned usual = run_bin_of(usual_ms);
    for (unsigned i = 0; i < RUN_BINS; i++)
        belief->parts[i] = exp2(-fabs((double)i - usual) / 4);
    run_belief_scale(belief);
}

double run_belief_learn(struct run_belief *belief, const struct run_histogram *histogram, double strength)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < RUN_BINS; i++)
        weight += histogram->weights[i];
    double general = strength * RUN_UNIT, scale = 1 / (general + (double)weight);
    for (size_t i = 0; i < RUN_BINS; i++)
        belief->parts[i] = (belief->parts[i] * general + histogram->weights[i]) * scale;
    return (double)weight * scale;
}

void run_belief_limit(struct run_belief *belief, int64_t limit_ms)
{
    for (unsigned i = 0; i < RUN_BINS; i++)
        if (edges_ms[i] > (double)limit_ms * LIMIT_SLACK)
            belief->parts[i] *= BEYOND_LIMIT;
    run_belief_scale(belief);
}

/* A bin that remains possible after the elapsed time. */
struct rest {
    double part, from_ms, to_ms;
    double middle_ms; // geometric for a whole bin: jobs are spread evenly by ratio
};

static bool rest_of(const struct run_belief *belief, double elapsed_ms, unsigned bin, struct rest *ret)
{
    *ret = (struct rest){ belief->parts[bin], edges_ms[bin], edges_ms[bin + 1], 0 };
    ret->middle_ms = bin == 0 ? ret->to_ms / 2 : sqrt(ret->from_ms * ret->to_ms);
    if (elapsed_ms > ret->from_ms) {
        ret->part *= (ret->to_ms - elapsed_ms) / (ret->to_ms - ret->from_ms);
        ret->from_ms = elapsed_ms;
        ret->middle_ms = (elapsed_ms + ret->to_ms) / 2;
    }
    return ret->to_ms > elapsed_ms && ret->part > 0;
}

static double left_after(const struct run_belief *belief, int64_t elapsed_ms)
{
    struct rest rest;
    double sum = 0;
    for (unsigned i = run_bin_of(elapsed_ms); i < RUN_BINS; i++)
        sum += rest_of(belief, (double)elapsed_ms, i, &rest) ? rest.part : 0;
    return sum;
}

double run_belief_quantile_ms(const struct run_belief *belief, int64_t elapsed_ms, double quantile)
{
    double elapsed = (double)elapsed_ms, sum = left_after(belief, elapsed_ms), below = 0, at = 2 * elapsed;
    struct rest rest;
    for (unsigned i = run_bin_of(elapsed_ms); sum > NEARLY_NOTHING && i < RUN_BINS; i++) {
        if (!rest_of(belief, elapsed, i, &rest))
            continue;
        if (below + rest.part >= quantile * sum)
            return rest.from_ms + (rest.to_ms - rest.from_ms) * (quantile * sum - below) / rest.part;
        below += rest.part;
        at = rest.to_ms; // after rounding, the quantile may not be reached
    }
    return at;
}

double run_belief_mean_ms(const struct run_belief *belief, int64_t elapsed_ms)
{
    double elapsed = (double)elapsed_ms, sum = 0, total = 0;
    struct rest rest;
    for (unsigned i = run_bin_of(elapsed_ms); i < RUN_BINS; i++) {
        if (!rest_of(belief, elapsed, i, &rest))
            continue;
        sum += rest.part;
        total += rest.part * rest.middle_ms;
    }
    return sum > NEARLY_NOTHING ? total / sum : 2 * elapsed;
}

double run_belief_order_ms(const struct run_belief *belief, int64_t elapsed_ms)
{
    double elapsed = (double)elapsed_ms, sum = 0, total = 0;
    struct rest rest;
    for (unsigned i = run_bin_of(elapsed_ms); i < RUN_BINS; i++) {
        if (!rest_of(belief, elapsed, i, &rest))
            continue;
        sum += rest.part;
        total += rest.part * sqrt(rest.middle_ms);
    }
    return sum > NEARLY_NOTHING ? total / sum * (total / sum) : 2 * elapsed;
}

double run_belief_index_ms(const struct run_belief *belief, int64_t elapsed_ms)
{
    double elapsed = (double)elapsed_ms, sum = left_after(belief, elapsed_ms), done = 0, spent = 0,
           best = INFINITY;
    struct rest rest;
    for (unsigned i = run_bin_of(elapsed_ms); sum > NEARLY_NOTHING && i < RUN_BINS; i++) {
        if (!rest_of(belief, elapsed, i, &rest))
            continue;
        done += rest.part;
        spent += rest.part * (rest.middle_ms - elapsed);
        double index = (spent + (sum - done) * (rest.to_ms - elapsed)) / done;
        if (index < best)
            best = index;
    }
    return best < INFINITY ? best : elapsed + 1;
}

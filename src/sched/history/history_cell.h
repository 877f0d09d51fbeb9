/* SPDX-License-Identifier: MIT */
/*
 * Durations in half-octave bins: a histogram in which old runs fade, and a probability distribution over the
 * bins.
 */
#pragma once

#include <stdint.h>

/* Bin k ranges from 8 * 2^(k/2) s to 8 * 2^((k+1)/2) s, the first from 0. Shorter runs are not distinguished,
 * because starting a job takes as long. The last bin ends at 194 days and includes longer runs. */
#define RUN_BINS 42U

unsigned run_bin_of(int64_t ms);
int64_t run_bin_start_ms(unsigned bin);

/* A complete run has weight RUN_UNIT. Each new run reduces the existing weights by 1/64, so their total is at
 * most 64 runs. */
#define RUN_UNIT (UINT32_C(1) << 17)
#define RUN_FADE 64U

struct run_histogram {
    uint32_t weights[RUN_BINS];
};

/* Probabilities; their sum is 1. */
struct run_belief {
    double parts[RUN_BINS];
};

void run_histogram_add(struct run_histogram *histogram, int64_t run_ms, uint32_t weight);

/* The prior when only a usual duration is known: it is the median, and the probability of any factor from it
 * decreases with the square root of that factor. */
void run_belief_init(struct run_belief *belief, int64_t usual_ms);

/* Combines the prior, with the weight of `strength` runs, and the histogram; not both weights may be 0.
 * Returns the part of the result that comes from the histogram. */
double run_belief_learn(struct run_belief *belief, const struct run_histogram *histogram, double strength);

/* Makes durations above this limit very unlikely. */
void run_belief_limit(struct run_belief *belief, int64_t limit_ms);

/* Scales the sum to 1; uniform if all are 0. */
void run_belief_scale(struct run_belief *belief);

/*
 * Of the whole duration of a run that has already taken `elapsed_ms`: a quantile, the mean, and the value for
 * ordering, the power mean with exponent 1/2. It lies between the geometric mean, which underrates the
 * possibility of a long run, and the arithmetic mean, which a small probability of weeks dominates. Twice the
 * elapsed time if the distribution has no weight beyond it.
 */
double run_belief_quantile_ms(const struct run_belief *belief, int64_t elapsed_ms, double quantile);
double run_belief_mean_ms(const struct run_belief *belief, int64_t elapsed_ms);
double run_belief_order_ms(const struct run_belief *belief, int64_t elapsed_ms);

/*
 * Gittins index for preemptive ordering (Gittins, Bandit processes and dynamic allocation indices, JRSS B
 * 1979): the minimum, over all d, of the expected time spent within the next d divided by the probability of
 * completion within d. Lower is better.
 */
double run_belief_index_ms(const struct run_belief *belief, int64_t elapsed_ms);

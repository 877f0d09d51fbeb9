/* SPDX-License-Identifier: MIT */
/*
 * Durations in half-octave bins: a histogram in which old runs fade, and what is believed of a run, as
 * probabilities of the bins.
 */
#pragma once

#include <stdint.h>

/* Bin k: from 8 * 2^(k/2) s to 8 * 2^((k+1)/2) s, the first from 0. Shorter ones are not told apart: starting
 * a job takes as long. The last ends after 194 days, and takes what is longer. */
#define RUN_BINS 42U

unsigned run_bin_of(int64_t ms);
int64_t run_bin_start_ms(unsigned bin);

/* A whole run weighs RUN_UNIT; what is there loses 1/64 of itself with every later one, so that all weigh at
 * most 64 runs together. */
#define RUN_UNIT (UINT32_C(1) << 17)
#define RUN_FADE 64U

struct run_histogram {
    uint32_t weights[RUN_BINS];
};

/* Adds up to 1. */
struct run_belief {
    double parts[RUN_BINS];
};

void run_histogram_add(struct run_histogram *histogram, int64_t run_ms, uint32_t weight);

/* What is believed while nothing is known but a usual duration: it is the median, and any factor away from it
 * gets less likely with the square root of that factor. */
void run_belief_init(struct run_belief *belief, int64_t usual_ms);

/* What is believed in general weighs as much as `strength` runs against those of the histogram,
 * which must not both be 0. Returns how large a part of the new belief comes from the histogram. */
double run_belief_learn(struct run_belief *belief, const struct run_histogram *histogram, double strength);

/* Almost nobody runs for longer than this. */
void run_belief_limit(struct run_belief *belief, int64_t limit_ms);

/* Makes it add up to 1 again; uniform when nothing is left. */
void run_belief_scale(struct run_belief *belief);

/*
 * Of the whole duration of a run that has taken `elapsed_ms` already: a quantile, the mean, and what to order
 * jobs by, the power mean with exponent 1/2. That lies between the geometric mean, which makes too little of
 * a chance to run long, and the arithmetic one, which a slight chance to run for weeks rules. Twice the
 * elapsed time when nobody was believed to run for so long.
 */
double run_belief_quantile_ms(const struct run_belief *belief, int64_t elapsed_ms, double quantile);
double run_belief_mean_ms(const struct run_belief *belief, int64_t elapsed_ms);
double run_belief_order_ms(const struct run_belief *belief, int64_t elapsed_ms);

/*
 * What to choose by among runs that can be interrupted (Gittins, Bandit processes and dynamic allocation
 * indices, JRSS B 1979): the least, over all times d, of the time expected to be spent in the next d per
 * chance to be done within them. Lower is better.
 */
double run_belief_index_ms(const struct run_belief *belief, int64_t elapsed_ms);

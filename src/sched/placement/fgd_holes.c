/* SPDX-License-Identifier: MIT */
/*
 * The value of the rest of a partly used GPU: the prices in "serve the requested shares with as few GPUs as
 * possible". They are the dual of that linear programme, computed by multiplicative weights (Garg and
 * Koenemann): each step buys the most expensive set of shares that fits one GPU, and lowers the prices of the
 * sizes it serves. The mean of the second half of the steps is within about 2 % of the optimum.
 */
#include <string.h>

#include "sched/placement/fgd.h"

#define STEPS 1000
#define RATE  0.1

struct size {
    uint32_t units;
    uint32_t times; // it is in the dearest set
    double demand;
    double weight;
    double price;
    double sum; // of prices
};

/* The dearest use of each number of units; `choice`: its last size, -1: a unit is left over. */
static void fill(
    const struct size *sizes, size_t n, double values[HOLE_UNITS + 1], int choice[HOLE_UNITS + 1])
{
    values[0] = 0;
    for (uint32_t units = 1; units <= HOLE_UNITS; units++) {
        double best = values[units - 1];
        int chosen = -1;
        for (size_t i = 0; i < n && sizes[i].units <= units; i++) {
            double value = sizes[i].price + values[units - sizes[i].units];
            if (value > best) {
                best = value;
                chosen = (int)i;
            }
        }
        values[units] = best;
        choice[units] = chosen;
    }
}

static void count_times(struct size *sizes, size_t n, const int choice[HOLE_UNITS + 1])
{
    for (size_t i = 0; i < n; i++)
        sizes[i].times = 0;
    for (uint32_t units = HOLE_UNITS; units > 0;) {
        if (choice[units] < 0) {
            units--;
            continue;
        }
        struct size *size = &sizes[choice[units]];
        size->times++;
        units -= size->units;
    }
}

static void lower_weights(struct size *sizes, size_t n)
{
    double gpus = 0; // until the first size of the set is served
    for (size_t i = 0; i < n; i++)
        if (sizes[i].times > 0 && (gpus == 0 || sizes[i].demand / sizes[i].times < gpus))
            gpus = sizes[i].demand / sizes[i].times;
    for (size_t i = 0; i < n; i++)
        sizes[i].weight *= 1 - RATE * gpus * sizes[i].times / sizes[i].demand;
}

void fgd_holes(const double demand[HOLE_UNITS + 1], double ret[HOLE_UNITS + 1])
{
    struct size sizes[HOLE_UNITS];
    int choice[HOLE_UNITS + 1] = { 0 };
    size_t n = 0;
    for (uint32_t units = 1; units <= HOLE_UNITS; units++)
        if (demand[units] > 0)
            sizes[n++] =
                (struct size){ .units = units, .demand = demand[units], .weight = demand[units] * units };
    memset(ret, 0, (HOLE_UNITS + 1) * sizeof(*ret));
    ret[HOLE_UNITS] = 1;
    if (n == 0)
        return;
    for (int step = 0; step < STEPS; step++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += sizes[i].weight;
        for (size_t i = 0; i < n; i++) {
            sizes[i].weight /= sum;
            sizes[i].price = sizes[i].weight / sizes[i].demand;
        }
        fill(sizes, n, ret, choice);
        for (size_t i = 0; i < n && step >= STEPS / 2; i++)
            sizes[i].sum += sizes[i].price / ret[HOLE_UNITS];
        count_times(sizes, n, choice);
        lower_weights(sizes, n);
    }
    for (size_t i = 0; i < n; i++)
        sizes[i].price = sizes[i].sum;
    fill(sizes, n, ret, choice);
    for (uint32_t units = 0; units <= HOLE_UNITS; units++)
        ret[units] /= ret[HOLE_UNITS] > 0 ? ret[HOLE_UNITS] : 1;
}

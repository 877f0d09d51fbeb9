/* SPDX-License-Identifier: MIT */
/*
 * Nodes that fail and come back during a replay. Each node fails after exponentially distributed times, until
 * the last submission, and is back after a fixed time. The times depend on the seed only, not on what the
 * scheduler does, so policies are compared under the same failures.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers/heap.h"
#include "lab/sim/random.h"

struct failures {
    struct random random;
    struct heap events; // of nodes: node, kind
    double mean_ms;     // between a return and the next failure
    int64_t repair_ms, last_ms;
};

void failures_init(struct failures *failures, size_t n_nodes, int64_t mean_ms, int64_t repair_ms,
    int64_t last_ms, uint64_t seed);
void failures_clear(struct failures *failures);

int64_t failures_next_ms(const struct failures *failures); // TIME_NEVER: none
/* The next change that is due; false: none. */
bool failures_take(struct failures *failures, int64_t now_ms, uint32_t *ret_node, bool *ret_is_up);

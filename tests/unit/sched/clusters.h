/* SPDX-License-Identifier: MIT */
/* Clusters to try placement on, made in one call. */
#pragma once

#include "sched/placement/placement.h"
#include "unit_test.h"

#ifndef GIB
#define GIB (1ULL << 30)
#endif

/* cmocka's setup and teardown of an empty cluster in *state; the end of a test also checks its invariant. */
int clusters_open(void **state);
int clusters_close(void **state);

/* The next number below `limit`, the same for the same seed. */
uint32_t clusters_draw(uint32_t *seed, uint32_t limit);

/* A node that is up, with this many GPUs "H200" of 100 GiB, 16 CPUs and 64 GiB; its GPUs are NAME-0 and so
 * on. */
struct cluster_node *clusters_add(struct cluster *cluster, const char *name, uint32_t gpus);

/* A fit of a job for which nothing is reserved, now 0, expected to end at 1000. */
struct fit clusters_fit(void);

/* Places by this way, without state, and books it. The caller clears *ret. */
bool clusters_place(struct cluster *cluster, const struct placement *placement, struct sched_request request,
    struct allocation *ret);

/* Books so many whole GPUs of the node, the lowest first, for good. */
void clusters_fill(struct cluster *cluster, const char *name, uint32_t gpus);

/* SPDX-License-Identifier: MIT */
/*
 * Partitions: named sets of nodes with a time limit, a priority, a limit of GPUs and users. They come from
 * the configuration; one of them is the default. The scheduler knows their nodes and priorities
 * (sched/cluster/cluster.h), the core their limits, and the API who may use them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"
#include "sched/sched.h"

struct core;

struct core_member {
    bool is_group;
    uint32_t id;
};

struct core_partition {
    struct cluster_partition set; // its name, nodes and priority
    char *nodes;                  // as configured: "gpu[1-4]"; NULL: all
    char *users;                  // as configured: "ada,group:ml"; NULL: all
    struct core_member *members;  // the users and groups among these that exist
    size_t n_members;
    int64_t max_time_ms, default_time_ms; // 0: those of all jobs
    uint32_t max_gpus;                    // of one job; 0: no limit
    bool is_default;
    bool is_builtin; // all nodes; there when the configuration names no default
};

/* In the order of the configuration. */
const struct core_partition *core_partitions(const struct core *core, size_t *ret_count);

/* Calls `check` for each partition that the request names, or the default one, until one returns less than 0.
 * An unknown name is -EINVAL. */
typedef int core_partition_fn(const struct core_partition *partition, const void *arg, struct error *err);
int core_each_partition_of(const struct core *core, const struct job_ask *ask, core_partition_fn *check,
    const void *arg, struct error *err);

/* Checks the request against the limits of its partitions. */
int core_check_partition(const struct core *core, const struct job_ask *ask, struct error *err);

/* What its partitions add to a request. */
struct core_partition_terms {
    char *name; // to be recorded: those that it names, or the configured default. Borrowed; NULL: all nodes
    int64_t max_time_ms, default_time_ms; // the lowest of its partitions; 0: none
};
struct core_partition_terms core_partition_terms(const struct core *core, const struct job_ask *ask);

/* Passes the partitions to the scheduler. */
void core_configure_partitions(struct core *core);

/* SPDX-License-Identifier: MIT */
/* The jobs that hold resources on each node: whoever asks about a node or a GPU need not look at all jobs. */
#pragma once

#include <stddef.h>

#include "base/containers/name_table.h"

struct core;
struct core_entry;

struct node_jobs {
    char *name; // of the node
    struct core_entry **items;
    size_t count, capacity;
};

struct node_jobs_table {
    struct node_jobs *nodes;
    size_t count;
    struct name_table names;
};

/* The job starts or stops holding resources on its nodes. */
void core_enter_nodes(struct core *core, struct core_entry *entry);
void core_leave_nodes(struct core *core, struct core_entry *entry);

/* A copy, so jobs may be removed during the visit; the latest comes first. The caller frees it. */
struct core_entry **core_jobs_on(const struct core *core, const char *node, size_t *ret_count);

void core_clear_node_jobs(struct core *core);

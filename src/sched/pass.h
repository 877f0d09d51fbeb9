/* SPDX-License-Identifier: MIT */
/* One scheduling pass: who of the waiting jobs starts now, and on what. */
#pragma once

#include "sched/cluster.h"
#include "sched/placement.h"
#include "sched/queue.h"

/* In which order classes are looked at; the field's word for it is queueing policy. */
struct policy {
    const char *name;
    bool (*is_before)(const struct queue_class *a, const struct queue_class *b); // by priority and cursor
};

/* Higher priority first, then the lower job id. */
extern const struct policy policy_priority_fifo;

/*
 * Starts what can start. For each job to start, `start` is called with the grants; it must take the entry out
 * of the queue and book the grants in the cluster before it returns. A job that does not fit claims the GPUs
 * it waits for, so that no later one delays it; jobs that need other GPUs go on. Cost: classes and GPUs, not
 * jobs.
 */
void sched_pass(struct queue *queue, struct cluster *cluster, const struct policy *policy,
    const struct placement *placement,
    void (*start)(
        void *arg, struct queue_entry *entry, struct cluster_node *node, const struct record_list *grants),
    void *arg);

/* Why this request does not start now, as a word of the closed list: "resources", "gpu_memory", "priority",
 * "node_down" or "never_fits". `text` gets the sentence. */
const char *sched_explain(
    const struct cluster *cluster, const struct sched_request *request, char *text, size_t size);

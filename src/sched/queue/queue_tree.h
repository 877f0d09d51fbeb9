/* SPDX-License-Identifier: MIT */
/* The tree of waiting classes, modified only by queue.c. Functions that read it are in queue.h. */
#pragma once

#include "sched/queue/queue.h"

/* A class is in the tree while its `size` is above 0. Uses its rank, head, need, horizon and freshness. */
void queue_tree_insert(struct queue *queue, struct queue_class *class);
void queue_tree_remove(struct queue *queue, struct queue_class *class);

/* To be called after a change of the class's rank, head or other members: moves it if necessary and updates
 * the tree's aggregates. */
void queue_tree_restore(struct queue *queue, struct queue_class *class);

/* The number of jobs in classes that precede this class, which need not be in the tree. */
uint64_t queue_tree_jobs_before(const struct queue *queue, const struct queue_class *class);

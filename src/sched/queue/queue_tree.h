/* SPDX-License-Identifier: MIT */
/* The tree of waiting classes; only queue.c changes it. What is read from it is in queue.h. */
#pragma once

#include "sched/queue/queue.h"

/* A class is in the tree while its `size` is above 0. Its rank, head, need, horizon and freshness are read.
 */
void queue_tree_insert(struct queue *queue, struct queue_class *class);
void queue_tree_remove(struct queue *queue, struct queue_class *class);

/* The class's rank, head or other members have changed: moves it when its place is wrong now, and brings what
 * the tree knows of it up to date. */
void queue_tree_restore(struct queue *queue, struct queue_class *class);

/* Jobs of the tree's classes that come before this class, which need not be in the tree. */
uint64_t queue_tree_jobs_before(const struct queue *queue, const struct queue_class *class);

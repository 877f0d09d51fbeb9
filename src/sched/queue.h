/* SPDX-License-Identifier: MIT */
/*
 * Waiting jobs. Jobs that ask for the same thing for the same owner at the same priority form one class,
 * first come first served; a pass looks at classes, so that its cost does not grow with the length of the
 * queue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/cluster.h"

struct queue_class;

/* Embedded in the owner's job object. */
struct queue_entry {
    uint64_t job;
    struct queue_class *class; // NULL while it does not wait
    struct queue_entry *before, *after;
};

struct queue_class {
    uint32_t uid;
    int32_t priority;
    struct sched_request request;
    struct queue_entry *first, *last; // in order of job id
    size_t length;
    struct queue_entry *cursor; // during a pass: the next entry to look at
    struct queue_class *next;   // in its bucket
};

struct queue {
    struct queue_class **buckets;
    size_t n_buckets, n_classes;
    size_t length; // entries in all classes
};

void queue_init(struct queue *queue);
void queue_clear(struct queue *queue); // entries are not owned

/* Adds an entry; `ids` is copied when the class is new. A job that comes back takes its old place by id. */
void queue_add(struct queue *queue, struct queue_entry *entry, uint64_t job, uint32_t uid, int32_t priority,
    const struct sched_request *request);

/* Takes an entry out; harmless when it does not wait. */
void queue_remove(struct queue *queue, struct queue_entry *entry);

/* How many entries start before this one would, plus one. */
size_t queue_position(const struct queue *queue, const struct queue_entry *entry);

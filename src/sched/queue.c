/* SPDX-License-Identifier: MIT */
#include "sched/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BUCKETS_MIN 64U

void queue_init(struct queue *queue)
{
    *queue = (struct queue){ .n_buckets = BUCKETS_MIN };
    queue->buckets = xcalloc(queue->n_buckets, sizeof(struct queue_class *));
}

static void class_free(struct queue_class *class)
{
    free(class->request.ids);
    free(class);
}

void queue_clear(struct queue *queue)
{
    for (size_t i = 0; i < queue->n_buckets; i++) {
        struct queue_class *class = queue->buckets[i];
        while (class != NULL) {
            struct queue_class *next = class->next;
            class_free(class);
            class = next;
        }
    }
    free(queue->buckets);
    *queue = (struct queue){ 0 };
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
}

static uint64_t class_hash(uint32_t uid, int32_t priority, const struct sched_request *request)
{
    uint64_t hash = mix(mix(mix(mix(1, uid), (uint32_t)priority), request->gpus), request->gpu_mem);
    for (size_t i = 0; i < request->n_ids; i++)
        hash = mix(hash, request->ids[i]);
    return hash;
}

static bool is_same(
    const struct queue_class *class, uint32_t uid, int32_t priority, const struct sched_request *request)
{
    return class->uid == uid && class->priority == priority && class->request.gpus == request->gpus &&
           class->request.gpu_mem == request->gpu_mem && class->request.n_ids == request->n_ids &&
           (request->n_ids == 0 ||
               memcmp(class->request.ids, request->ids, request->n_ids * sizeof(uint32_t)) == 0);
}

static struct queue_class **bucket_of(const struct queue *queue, const struct queue_class *class)
{
    uint64_t hash = class_hash(class->uid, class->priority, &class->request);
    return &queue->buckets[hash % queue->n_buckets];
}

static void grow(struct queue *queue)
{
    struct queue_class **old = queue->buckets;
    size_t n_old = queue->n_buckets;
    queue->n_buckets *= 4;
    queue->buckets = xcalloc(queue->n_buckets, sizeof(struct queue_class *));
    for (size_t i = 0; i < n_old; i++) {
        while (old[i] != NULL) {
            struct queue_class *class = old[i];
            old[i] = class->next;
            struct queue_class **bucket = bucket_of(queue, class);
            class->next = *bucket;
            *bucket = class;
        }
    }
    free(old);
}

static struct queue_class *find_or_add_class(
    struct queue *queue, uint32_t uid, int32_t priority, const struct sched_request *request)
{
    struct queue_class *class = queue->buckets[class_hash(uid, priority, request) % queue->n_buckets];
    for (; class != NULL; class = class->next)
        if (is_same(class, uid, priority, request))
            return class;
    if (queue->n_classes >= queue->n_buckets * 2)
        grow(queue);
    class = xcalloc(1, sizeof(*class));
    class->uid = uid;
    class->priority = priority;
    class->request = *request;
    if (request->n_ids > 0) {
        class->request.ids = xcalloc(request->n_ids, sizeof(uint32_t));
        memcpy(class->request.ids, request->ids, request->n_ids * sizeof(uint32_t));
    }
    struct queue_class **bucket = bucket_of(queue, class);
    class->next = *bucket;
    *bucket = class;
    queue->n_classes++;
    return class;
}

static void remove_class(struct queue *queue, struct queue_class *class)
{
    struct queue_class **link = bucket_of(queue, class);
    while (*link != class)
        link = &(*link)->next;
    *link = class->next;
    queue->n_classes--;
    class_free(class);
}

void queue_add(struct queue *queue, struct queue_entry *entry, uint64_t job, uint32_t uid, int32_t priority,
    const struct sched_request *request)
{
    struct queue_class *class = find_or_add_class(queue, uid, priority, request);
    /* New jobs have the highest id; one that comes back is older than all and goes near the front. */
    struct queue_entry *before = class->last;
    if (class->first != NULL && class->first->job > job)
        before = NULL;
    while (before != NULL && before->job > job)
        before = before->before;
    *entry = (struct queue_entry){ .job = job, .class = class, .before = before };
    entry->after = before != NULL ? before->after : class->first;
    *(before != NULL ? &before->after : &class->first) = entry;
    *(entry->after != NULL ? &entry->after->before : &class->last) = entry;
    class->length++;
    queue->length++;
}

void queue_remove(struct queue *queue, struct queue_entry *entry)
{
    struct queue_class *class = entry->class;
    if (class == NULL)
        return;
    *(entry->before != NULL ? &entry->before->after : &class->first) = entry->after;
    *(entry->after != NULL ? &entry->after->before : &class->last) = entry->before;
    *entry = (struct queue_entry){ 0 };
    class->length--;
    queue->length--;
    if (class->length == 0)
        remove_class(queue, class);
}

size_t queue_position(const struct queue *queue, const struct queue_entry *entry)
{
    if (entry->class == NULL)
        return 0;
    size_t earlier = 0;
    for (size_t i = 0; i < queue->n_buckets; i++) {
        for (const struct queue_class *class = queue->buckets[i]; class != NULL; class = class->next) {
            if (class->priority < entry->class->priority)
                continue;
            if (class->priority > entry->class->priority || class->last->job < entry->job) {
                earlier += class->length;
                continue;
            }
            for (const struct queue_entry *e = class->first; e != NULL && e->job < entry->job; e = e->after)
                earlier++;
        }
    }
    return earlier + 1;
}

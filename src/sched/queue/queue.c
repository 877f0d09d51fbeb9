/* SPDX-License-Identifier: MIT */
/*
 * Classes are in a map by key; each has a list of its jobs ordered by (submit time, id). queue_tree.c
 * orders the classes. A class is in the tree exactly while it has jobs and is not parked.
 */
#include "sched/queue/queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sched/queue/queue_tree.h"

void queue_init(struct queue *queue)
{
    *queue = (struct queue){ .kinds_version = 1 };
}

static struct queue_class *class_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct queue_class, link);
}

static void class_free(struct map_link *link)
{
    struct queue_class *class = class_at(link);
    request_clear(&class->key.request);
    free(class->brief);
    free(class);
}

void queue_clear(struct queue *queue)
{
    map_clear(&queue->classes, class_free);
    *queue = (struct queue){ 0 };
}

uint64_t class_key_hash(const struct class_key *key)
{
    const uint64_t parts[] = { key->uid, key->gid, (uint32_t)key->priority, (uint32_t)key->own_priority,
        key->is_preemptible, key->had_turn, key->has_begun, (uint64_t)key->limit_ms,
        (uint64_t)key->estimate_ms, key->command_hash, key->burst, key->stage, request_hash(&key->request) };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        hash = map_hash_add(hash, parts[i]);
    return hash;
}

static bool key_equal(const struct class_key *a, const struct class_key *b)
{
    return a->uid == b->uid && a->gid == b->gid && a->priority == b->priority &&
           a->own_priority == b->own_priority && a->is_preemptible == b->is_preemptible &&
           a->had_turn == b->had_turn && a->has_begun == b->has_begun && a->limit_ms == b->limit_ms &&
           a->estimate_ms == b->estimate_ms && a->command_hash == b->command_hash && a->burst == b->burst &&
           a->stage == b->stage && request_equal(&a->request, &b->request);
}

static uint64_t hash_of(const struct map_link *link)
{
    return class_at(link)->hash;
}

static struct queue_class *find(const struct queue *queue, const struct class_key *key, uint64_t hash)
{
    struct map_link *link = map_chain(&queue->classes, hash);
    while (link != NULL && !key_equal(&class_at(link)->key, key))
        link = link->next;
    return link != NULL ? class_at(link) : NULL;
}

struct queue_class *queue_hold_class(struct queue *queue, const struct class_key *key, bool *ret_is_new)
{
    uint64_t hash = class_key_hash(key);
    struct queue_class *class = find(queue, key, hash);
    *ret_is_new = class == NULL;
    if (class == NULL) {
        class = xcalloc(1, sizeof(*class));
        class->key = *key;
        class->hash = hash;
        request_copy(&class->key.request, &key->request);
        class->number = ++queue->last_number;
        class->heap = map_hash(class->number);
        class->is_fresh = true;
        map_add(&queue->classes, &class->link, hash_of);
    }
    class->users++;
    return class;
}

void queue_drop_class(struct queue *queue, struct queue_class *class)
{
    assert(class->users > 0);
    if (--class->users > 0)
        return;
    assert(class->length == 0);
    map_remove(&queue->classes, &class->link, hash_of);
    class_free(&class->link);
}

static bool is_older(const struct queue_entry *a, const struct queue_entry *b)
{
    return a->submit_ms != b->submit_ms ? a->submit_ms < b->submit_ms : a->job < b->job;
}

/* The entry after which the new one is inserted, NULL: it becomes the head. Searched from both ends at once,
 * so that the newest, and a job that returns to its old place near the front, are found quickly. */
static struct queue_entry *entry_before(const struct queue_class *class, const struct queue_entry *entry)
{
    struct queue_entry *front = class->first, *back = class->last;
    while (front != NULL) {
        if (is_older(back, entry))
            return back;
        if (is_older(entry, front))
            return front->before;
        front = front->after;
        back = back->before;
    }
    return NULL;
}

/* A new last job keeps the other places valid; an insertion between two others does not. */
static void count_added(struct queue_entry *entry)
{
    struct queue_class *class = entry->class;
    bool is_only = class->first == class->last, is_last = class->last == entry;
    class->is_counted = is_only || (class->is_counted && is_last);
    entry->place = is_only || !is_last ? 0 : entry->before->place + 1;
}

void queue_add(struct queue *queue, struct queue_entry *entry, struct queue_class *class)
{
    assert(entry->class == NULL);
    struct queue_entry *before = entry_before(class, entry);
    entry->class = class;
    entry->before = before;
    entry->after = before != NULL ? before->after : class->first;
    *(before != NULL ? &before->after : &class->first) = entry;
    *(entry->after != NULL ? &entry->after->before : &class->last) = entry;
    count_added(entry);
    class->length++;
    queue->length++;
    if (class->size > 0)
        queue_tree_restore(queue, class);
    else if (!class->is_parked)
        queue_tree_insert(queue, class);
}

void queue_remove(struct queue *queue, struct queue_entry *entry)
{
    struct queue_class *class = entry->class;
    if (class == NULL)
        return;
    if (class->length == 1 && class->size > 0)
        queue_tree_remove(queue, class);
    *(entry->before != NULL ? &entry->before->after : &class->first) = entry->after;
    *(entry->after != NULL ? &entry->after->before : &class->last) = entry->before;
    class->is_counted = class->is_counted && (entry->before == NULL || entry->after == NULL);
    entry->class = NULL;
    entry->before = entry->after = NULL;
    class->length--;
    queue->length--;
    if (class->size > 0)
        queue_tree_restore(queue, class);
}

void queue_update(struct queue *queue, struct queue_class *class, double rank)
{
    class->rank = rank;
    queue_refresh(queue, class);
}

void queue_refresh(struct queue *queue, struct queue_class *class)
{
    if (class->size > 0)
        queue_tree_restore(queue, class);
}

void queue_park(struct queue *queue, struct queue_class *class)
{
    class->is_parked = true;
    if (class->size > 0)
        queue_tree_remove(queue, class);
}

void queue_unpark(struct queue *queue, struct queue_class *class)
{
    if (!class->is_parked)
        return;
    class->is_parked = false;
    class->is_fresh = true;
    if (class->length > 0)
        queue_tree_insert(queue, class);
}

/* Number of jobs of its class ahead of it. Counted when first needed, and valid while jobs are added and
 * removed at the ends only, because listing a queue queries all of them. */
static uint64_t place_in_class(const struct queue_entry *entry)
{
    struct queue_class *class = entry->class;
    uint64_t place = 0;
    for (struct queue_entry *each = class->first; each != NULL && !class->is_counted; each = each->after)
        each->place = place++;
    class->is_counted = true;
    return entry->place - class->first->place;
}

uint64_t queue_position(const struct queue *queue, const struct queue_entry *entry)
{
    if (entry->class == NULL)
        return 0;
    return queue_tree_jobs_before(queue, entry->class) + place_in_class(entry) + 1;
}

/* SPDX-License-Identifier: MIT */
/* A hash table with chains. It grows with the number of processes and never shrinks. */
#include "agent/host/watches.h"

#include <stdlib.h>

#include "agent/host/child.h"
#include "base/memory.h"

#define BUCKETS_FIRST 64U // a power of two, as all later numbers

struct watch {
    struct watches *watches;
    struct spool_id id;
    pid_t pid;
    struct child *child;
    struct watch *next; // of the same bucket
};

struct watches {
    struct event_base *base;
    watch_ended_fn *on_end;
    void *arg;
    struct watch **buckets;
    size_t n_buckets, count;
};

static struct watch **bucket_of(const struct watches *watches, const struct spool_id *id)
{
    uint64_t mixed = id->job * 0x9e3779b97f4a7c15ULL;
    mixed =
        (mixed ^ (uint64_t)id->attempt << 32 ^ (uint64_t)id->step << 16 ^ id->rank) * 0x9e3779b97f4a7c15ULL;
    return &watches->buckets[mixed >> 32 & (watches->n_buckets - 1)];
}

static void put(struct watches *watches, struct watch *watch)
{
    struct watch **bucket = bucket_of(watches, &watch->id);
    watch->next = *bucket;
    *bucket = watch;
}

static void grow(struct watches *watches)
{
    struct watch **old = watches->buckets;
    size_t n_old = watches->n_buckets;
    watches->n_buckets = n_old * 2;
    watches->buckets = xcalloc(watches->n_buckets, sizeof(struct watch *));
    for (size_t i = 0; i < n_old; i++) {
        while (old[i] != NULL) {
            struct watch *watch = old[i];
            old[i] = watch->next;
            put(watches, watch);
        }
    }
    free(old);
}

static void remove_at(struct watch **where)
{
    struct watch *watch = *where;
    *where = watch->next;
    watch->watches->count--;
    child_free(watch->child);
    free(watch);
}

static void on_child_end(void *arg, int status)
{
    struct watch *watch = arg;
    struct watches *watches = watch->watches;
    struct spool_id id = watch->id;
    pid_t pid = watch->pid;
    struct watch **where = bucket_of(watches, &id);
    while (*where != watch)
        where = &(*where)->next;
    watch->child = NULL; // frees itself
    remove_at(where);
    watches->on_end(watches->arg, &id, pid);
}

struct watches *watches_new(struct event_base *base, watch_ended_fn *on_end, void *arg)
{
    struct watches *watches = xcalloc(1, sizeof(*watches));
    *watches = (struct watches){ .base = base, .on_end = on_end, .arg = arg, .n_buckets = BUCKETS_FIRST };
    watches->buckets = xcalloc(watches->n_buckets, sizeof(struct watch *));
    return watches;
}

void watches_free(struct watches *watches)
{
    if (watches == NULL)
        return;
    for (size_t i = 0; i < watches->n_buckets; i++)
        while (watches->buckets[i] != NULL)
            remove_at(&watches->buckets[i]);
    free(watches->buckets);
    free(watches);
}

void watches_add(struct watches *watches, const struct spool_id *id, pid_t pid, int end_fd)
{
    if (watches->count >= watches->n_buckets)
        grow(watches);
    struct watch *watch = xcalloc(1, sizeof(*watch));
    *watch = (struct watch){ .watches = watches, .id = *id, .pid = pid };
    put(watches, watch);
    watches->count++;
    watch->child = child_watch(watches->base, end_fd, on_child_end, watch);
}

bool watches_has(const struct watches *watches, const struct spool_id *id)
{
    const struct watch *watch = *bucket_of(watches, id);
    while (watch != NULL && !spool_id_equal(&watch->id, id))
        watch = watch->next;
    return watch != NULL;
}

void watches_drop(struct watches *watches, const struct spool_id *id)
{
    struct watch **where = bucket_of(watches, id);
    while (*where != NULL) {
        if (spool_id_equal(&(*where)->id, id))
            remove_at(where);
        else
            where = &(*where)->next;
    }
}

/* SPDX-License-Identifier: MIT */
/* The watched processes, by the attempt that runs in them. */
#include "agent/host/watches.h"

#include <stdlib.h>

#include "agent/host/child.h"
#include "base/containers/map.h"
#include "base/memory.h"

struct watch {
    struct watches *watches;
    struct spool_id id;
    pid_t pid;
    struct child *child;
    struct map_link link;
};

struct watches {
    struct event_base *base;
    watch_ended_fn *on_end;
    void *arg;
    struct map map; // by id
};

static uint64_t hash_of(const struct spool_id *id)
{
    uint64_t hash = map_hash_add(map_hash(id->job), id->attempt);
    return map_hash_add(hash, (uint64_t)id->step << 32 | id->rank);
}

static struct watch *watch_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct watch, link);
}

static uint64_t hash_of_link(const struct map_link *link)
{
    return hash_of(&watch_at(link)->id);
}

static void release(struct map_link *link)
{
    struct watch *watch = watch_at(link);
    child_free(watch->child);
    free(watch);
}

static void on_child_end(void *arg, int status)
{
    struct watch *watch = arg;
    struct watches *watches = watch->watches;
    struct spool_id id = watch->id;
    pid_t pid = watch->pid;
    map_remove(&watches->map, &watch->link, hash_of_link);
    watch->child = NULL; // frees itself
    release(&watch->link);
    watches->on_end(watches->arg, &id, pid);
}

struct watches *watches_new(struct event_base *base, watch_ended_fn *on_end, void *arg)
{
    struct watches *watches = xcalloc(1, sizeof(*watches));
    *watches = (struct watches){ .base = base, .on_end = on_end, .arg = arg };
    return watches;
}

void watches_free(struct watches *watches)
{
    if (watches == NULL)
        return;
    map_clear(&watches->map, release);
    free(watches);
}

void watches_add(struct watches *watches, const struct spool_id *id, pid_t pid, int end_fd)
{
    struct watch *watch = xcalloc(1, sizeof(*watch));
    *watch = (struct watch){ .watches = watches, .id = *id, .pid = pid };
    map_add(&watches->map, &watch->link, hash_of_link);
    watch->child = child_watch(watches->base, end_fd, on_child_end, watch);
}

static struct map_link *find(const struct watches *watches, const struct spool_id *id)
{
    struct map_link *link = map_chain(&watches->map, hash_of(id));
    while (link != NULL && !spool_id_equal(&watch_at(link)->id, id))
        link = link->next;
    return link;
}

bool watches_has(const struct watches *watches, const struct spool_id *id)
{
    return find(watches, id) != NULL;
}

void watches_drop(struct watches *watches, const struct spool_id *id)
{
    struct map_link *link = NULL;
    while ((link = find(watches, id)) != NULL) {
        map_remove(&watches->map, link, hash_of_link);
        release(link);
    }
}

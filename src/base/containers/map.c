/* SPDX-License-Identifier: MIT */
/* A hash table with chains, the newest item first. It grows with its items and does not shrink. */
#include "base/containers/map.h"

#include <stdlib.h>

#include "base/memory.h"

#define BUCKETS_FIRST 64U // a power of two, as all later numbers

/* The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
uint64_t map_hash(uint64_t number)
{
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
    return number ^ (number >> 31);
}

uint64_t map_hash_add(uint64_t hash, uint64_t number)
{
    return map_hash(hash + number + 0x9e3779b97f4a7c15ULL);
}

static struct map_link **bucket_of(const struct map *map, uint64_t hash)
{
    return &map->buckets[hash & (map->n_buckets - 1)];
}

struct map_link *const *map_bucket(const struct map *map, uint64_t hash)
{
    return bucket_of(map, hash);
}

/* The items of an old bucket go to two new ones; in each they keep their order. */
static void move_chain(const struct map *map, struct map_link *chain)
{
    struct map_link *reversed = NULL;
    while (chain != NULL) {
        struct map_link *link = chain;
        chain = link->next;
        link->next = reversed;
        reversed = link;
    }
    while (reversed != NULL) {
        struct map_link *link = reversed, **bucket = bucket_of(map, link->hash);
        reversed = link->next;
        link->next = *bucket;
        *bucket = link;
    }
}

static void grow(struct map *map)
{
    struct map_link **old = map->buckets;
    size_t n_old = map->n_buckets;
    map->n_buckets = n_old > 0 ? 2 * n_old : BUCKETS_FIRST;
    map->buckets = xcalloc(map->n_buckets, sizeof(struct map_link *));
    for (size_t i = 0; i < n_old; i++)
        move_chain(map, old[i]);
    free(old);
}

void map_add(struct map *map, struct map_link *link, uint64_t hash)
{
    if (map->count >= map->n_buckets)
        grow(map);
    struct map_link **bucket = bucket_of(map, hash);
    *link = (struct map_link){ *bucket, hash };
    *bucket = link;
    map->count++;
}

void map_remove(struct map *map, struct map_link *link)
{
    struct map_link **where = bucket_of(map, link->hash);
    while (*where != link)
        where = &(*where)->next;
    *where = link->next;
    map->count--;
}

static struct map_link *same_hash(struct map_link *link, uint64_t hash)
{
    while (link != NULL && link->hash != hash)
        link = link->next;
    return link;
}

struct map_link *map_find(const struct map *map, uint64_t hash)
{
    return map->n_buckets > 0 ? same_hash(*bucket_of(map, hash), hash) : NULL;
}

struct map_link *map_find_next(const struct map_link *link)
{
    return same_hash(link->next, link->hash);
}

static struct map_link *first_from(const struct map *map, size_t bucket)
{
    while (bucket < map->n_buckets && map->buckets[bucket] == NULL)
        bucket++;
    return bucket < map->n_buckets ? map->buckets[bucket] : NULL;
}

struct map_link *map_first(const struct map *map)
{
    return first_from(map, 0);
}

struct map_link *map_next(const struct map *map, const struct map_link *link)
{
    size_t bucket = link->hash & (map->n_buckets - 1);
    return link->next != NULL ? link->next : first_from(map, bucket + 1);
}

void map_clear(struct map *map, void (*release)(struct map_link *link))
{
    for (struct map_link *link = map_first(map), *next = NULL; link != NULL && release != NULL; link = next) {
        next = map_next(map, link);
        release(link);
    }
    free(map->buckets);
    *map = (struct map){ 0 };
}

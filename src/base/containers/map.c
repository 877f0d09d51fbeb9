/* SPDX-License-Identifier: MIT */
/* A hash table with chains. It grows with its items and does not shrink. */
#include "base/containers/map.h"

#include <stdlib.h>

#include "base/memory.h"

#define BUCKETS_FIRST    64U // a power of two, like all later sizes
#define ITEMS_PER_BUCKET 2U  // at most

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

static void put(const struct map *map, struct map_link *link, uint64_t hash)
{
    struct map_link **bucket = bucket_of(map, hash);
    link->next = *bucket;
    *bucket = link;
}

static struct map_link *reverse(struct map_link *chain)
{
    struct map_link *reversed = NULL;
    while (chain != NULL) {
        struct map_link *next = chain->next;
        chain->next = reversed;
        reversed = chain;
        chain = next;
    }
    return reversed;
}

/* Items of one bucket keep their order in their new buckets. */
static void grow(struct map *map, map_hash_fn *hash_of)
{
    struct map_link **old = map->buckets;
    size_t n_old = map->n_buckets;
    map->n_buckets = n_old > 0 ? 2 * n_old : BUCKETS_FIRST;
    map->buckets = xcalloc(map->n_buckets, sizeof(struct map_link *));
    for (size_t i = 0; i < n_old; i++) {
        struct map_link *next = NULL;
        for (struct map_link *link = reverse(old[i]); link != NULL; link = next) {
            next = link->next;
            put(map, link, hash_of(link));
        }
    }
    free(old);
}

void map_add(struct map *map, struct map_link *link, map_hash_fn *hash_of)
{
    if (map->count >= ITEMS_PER_BUCKET * map->n_buckets)
        grow(map, hash_of);
    put(map, link, hash_of(link));
    map->count++;
}

void map_remove(struct map *map, struct map_link *link, map_hash_fn *hash_of)
{
    struct map_link **where = bucket_of(map, hash_of(link));
    while (*where != link)
        where = &(*where)->next;
    *where = link->next;
    map->count--;
}

struct map_link *map_chain(const struct map *map, uint64_t hash)
{
    return map->n_buckets > 0 ? *bucket_of(map, hash) : NULL;
}

void map_clear(struct map *map, void (*release)(struct map_link *link))
{
    for (size_t i = 0; i < map->n_buckets && release != NULL; i++) {
        struct map_link *next = NULL;
        for (struct map_link *link = map->buckets[i]; link != NULL; link = next) {
            next = link->next;
            release(link);
        }
    }
    free(map->buckets);
    *map = (struct map){ 0 };
}

/* SPDX-License-Identifier: MIT */
/*
 * A hash table with chains, whose links are members of the items: an item costs one pointer and no
 * allocation. Items may have equal keys. The map does not know the keys: callers compare them while they
 * search a chain. Zeroed memory is an empty map.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_link {
    struct map_link *next; // in its chain
};

/* The hash of an item. */
typedef uint64_t map_hash_fn(const struct map_link *link);

struct map {
    struct map_link **buckets; // a loop over all items follows each chain
    size_t n_buckets, count;
};

/* The item of this type whose member the link is. */
#define MAP_ITEM(link, type, member) ((type *)(void *)((char *)(uintptr_t)(link)-offsetof(type, member)))

/* The hash of a number, and of a number after others. */
uint64_t map_hash(uint64_t number);
uint64_t map_hash_add(uint64_t hash, uint64_t number);

/* Adds an item. The map borrows the link until the item is removed. `hash_of` is the same for all its items.
 */
void map_add(struct map *map, struct map_link *link, map_hash_fn *hash_of);
void map_remove(struct map *map, struct map_link *link, map_hash_fn *hash_of);

/* The chain with all items of this hash, and with others; those that were added later come first. NULL: it is
 * empty. */
struct map_link *map_chain(const struct map *map, uint64_t hash);

/* The head of this chain, for prefetching; the map must not be empty. */
struct map_link *const *map_bucket(const struct map *map, uint64_t hash);

/* Empties the map. `release` is called for each item, and may free it; NULL: the items are not freed. */
void map_clear(struct map *map, void (*release)(struct map_link *link));

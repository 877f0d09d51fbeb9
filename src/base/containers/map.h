/* SPDX-License-Identifier: MIT */
/*
 * A hash table with chains, whose links are members of what is in it: nothing is allocated for an item, and
 * its removal needs no search for its key. Items may have equal keys. Zeroed memory is an empty map.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_link {
    struct map_link *next; // in its chain
    uint64_t hash;
};

struct map {
    struct map_link **buckets;
    size_t n_buckets, count;
};

/* The item of this type that has the link as this member. */
#define MAP_ITEM(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

/* The hash of a number, or of two: a bijection, so that items whose only key is one number are found by it.
 */
uint64_t map_hash(uint64_t number);
uint64_t map_hash_add(uint64_t hash, uint64_t number);

/* Adds an item. The map borrows the link until the item is removed. */
void map_add(struct map *map, struct map_link *link, uint64_t hash);
void map_remove(struct map *map, struct map_link *link);

/* The link of the item with this hash that was added last; NULL: there is none. The caller compares keys. */
struct map_link *map_find(const struct map *map, uint64_t hash);
struct map_link *map_find_next(const struct map_link *link); // the one before it with the same hash

/* All items, in no order. The one that a loop is at may be removed once its successor has been taken. */
struct map_link *map_first(const struct map *map);
struct map_link *map_next(const struct map *map, const struct map_link *link);

/* Where the chain of this hash begins, to read ahead; the map must not be empty. */
struct map_link *const *map_bucket(const struct map *map, uint64_t hash);

/* Empties the map. `release` is called for each item, which it may free; NULL: nobody frees them here. */
void map_clear(struct map *map, void (*release)(struct map_link *link));

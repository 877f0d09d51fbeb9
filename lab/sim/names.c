/* SPDX-License-Identifier: MIT */
/* A hash table with open addressing over an array of copies; it doubles when half full. */
#include "lab/sim/names.h"

#include <string.h>

#include "base/memory.h"

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * 1099511628211ULL;
    return hash;
}

static size_t find_bucket(const struct names *names, const char *text)
{
    size_t at = hash_bytes(HASH_START, text, strlen(text)) & (names->n_buckets - 1);
    while (names->buckets[at] != 0 && strcmp(names->items[names->buckets[at] - 1], text) != 0)
        at = (at + 1) & (names->n_buckets - 1);
    return at;
}

static void grow(struct names *names)
{
    free(names->buckets);
    names->n_buckets = names->n_buckets == 0 ? 64 : names->n_buckets * 2;
    names->buckets = xcalloc(names->n_buckets, sizeof(*names->buckets));
    names->items = xreallocarray(names->items, names->n_buckets / 2, sizeof(char *));
    for (size_t i = 0; i < names->count; i++)
        names->buckets[find_bucket(names, names->items[i])] = (uint32_t)i + 1;
}

uint32_t names_number(struct names *names, const char *text)
{
    if (names->count >= names->n_buckets / 2)
        grow(names);
    size_t at = find_bucket(names, text);
    if (names->buckets[at] == 0) {
        names->items[names->count++] = xstrdup(text);
        names->buckets[at] = (uint32_t)names->count;
    }
    return names->buckets[at] - 1;
}

void names_clear(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    free(names->buckets);
    *names = (struct names){ 0 };
}

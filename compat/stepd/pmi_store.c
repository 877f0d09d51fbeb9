/* SPDX-License-Identifier: MIT */
#include "compat/stepd/pmi_store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_BUCKETS 256U

static size_t hash(const char *key)
{
    uint64_t value = UINT64_C(14695981039346656037); // FNV-1a
    for (; *key != '\0'; key++)
        value = (value ^ (uint8_t)*key) * UINT64_C(1099511628211);
    return (size_t)value;
}

static struct pmi_pair *find(const struct pmi_store *store, const char *key)
{
    if (store->n_buckets == 0)
        return NULL;
    for (size_t i = store->buckets[hash(key) % store->n_buckets]; i != 0; i = store->pairs[i - 1].next)
        if (strcmp(store->pairs[i - 1].key, key) == 0)
            return &store->pairs[i - 1];
    return NULL;
}

static void link_pair(struct pmi_store *store, size_t place)
{
    size_t *bucket = &store->buckets[hash(store->pairs[place].key) % store->n_buckets];
    store->pairs[place].next = *bucket;
    *bucket = place + 1;
}

static void grow(struct pmi_store *store)
{
    size_t count = store->n_buckets == 0 ? FIRST_BUCKETS : 2 * store->n_buckets;
    free(store->buckets);
    store->buckets = xcalloc(count, sizeof(*store->buckets));
    store->n_buckets = count;
    for (size_t i = 0; i < store->count; i++)
        link_pair(store, i);
}

bool pmi_store_put(struct pmi_store *store, const char *key, const char *value)
{
    struct pmi_pair *known = find(store, key);
    if (known != NULL) {
        free(known->value);
        known->value = xstrdup(value);
        return true;
    }
    if (store->count >= PMI_PAIRS_MAX)
        return false;
    if (store->count >= store->n_buckets)
        grow(store);
    store->pairs = xreallocarray(store->pairs, store->count + 1, sizeof(*store->pairs));
    store->pairs[store->count] = (struct pmi_pair){ .key = xstrdup(key), .value = xstrdup(value) };
    link_pair(store, store->count++);
    return true;
}

const char *pmi_store_get(const struct pmi_store *store, const char *key)
{
    const struct pmi_pair *pair = find(store, key);
    return pair != NULL ? pair->value : NULL;
}

void pmi_store_clear(struct pmi_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        free(store->pairs[i].key);
        free(store->pairs[i].value);
    }
    free(store->pairs);
    free(store->buckets);
    *store = (struct pmi_store){ 0 };
}

void pmi_store_write(const struct pmi_store *store, struct buffer *out)
{
    for (size_t i = 0; i < store->count; i++) {
        buffer_append(out, store->pairs[i].key, strlen(store->pairs[i].key) + 1);
        buffer_append(out, store->pairs[i].value, strlen(store->pairs[i].value) + 1);
    }
}

bool pmi_store_read(struct pmi_store *store, const char *bytes, size_t length)
{
    if (length > 0 && bytes[length - 1] != '\0')
        return false;
    for (size_t i = 0; i < length;) {
        const char *key = bytes + i, *value = key + strlen(key) + 1;
        if (value >= bytes + length || !pmi_store_put(store, key, value))
            return false;
        i = (size_t)(value - bytes) + strlen(value) + 1;
    }
    return true;
}

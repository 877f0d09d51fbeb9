/* SPDX-License-Identifier: MIT */
/* Keys and values that the tasks of a node publish by PMI, and those of other nodes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

#define PMI_KEY_MAX   64U
#define PMI_VALUE_MAX 1024U
#define PMI_PAIRS_MAX (1U << 20)

struct pmi_pair {
    char *key, *value;
    size_t next; // in its bucket, 1 + place; 0: none
};

struct pmi_store {
    struct pmi_pair *pairs;
    size_t count;
    size_t *buckets; // 1 + place
    size_t n_buckets;
};

/* A later value replaces an earlier one. False if there are too many pairs. */
bool pmi_store_put(struct pmi_store *store, const char *key, const char *value);
const char *pmi_store_get(const struct pmi_store *store, const char *key); // NULL: unknown
void pmi_store_clear(struct pmi_store *store);

/* Converts the pairs to bytes for other nodes, and back. False if the bytes are invalid. */
void pmi_store_write(const struct pmi_store *store, struct buffer *out);
bool pmi_store_read(struct pmi_store *store, const char *bytes, size_t length);

/* SPDX-License-Identifier: MIT */
/* Positions in an array by name. Open addressing; names are never removed one by one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NAME_NONE SIZE_MAX

struct name_slot {
    uint64_t hash;
    const char *name; // NULL: empty
    size_t at;
};

struct name_table {
    struct name_slot *slots;
    size_t n_slots, count;
};

/* For tables from which names are removed. */
uint64_t name_hash(const char *name);

/* The position added with this name; NAME_NONE: there is none. NULL is no name. */
size_t name_table_find(const struct name_table *table, const char *name);

/* Adds a new name. The table borrows it: it stays as it is, where it is, until the table is cleared. */
void name_table_add(struct name_table *table, const char *name, size_t at);

void name_table_clear(struct name_table *table);

/* SPDX-License-Identifier: MIT */
#include "base/containers/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SLOTS_FIRST 16U

uint64_t name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3ULL;
    return hash ^ (hash >> 32);
}

size_t name_table_find(const struct name_table *table, const char *name)
{
    if (table->n_slots == 0 || name == NULL)
        return NAME_NONE;
    uint64_t hash = name_hash(name);
    size_t i = hash & (table->n_slots - 1);
    for (; table->slots[i].name != NULL; i = (i + 1) & (table->n_slots - 1))
        if (table->slots[i].hash == hash && strcmp(table->slots[i].name, name) == 0)
            return table->slots[i].at;
    return NAME_NONE;
}

static void insert(struct name_table *table, const struct name_slot *slot)
{
    size_t i = slot->hash & (table->n_slots - 1);
    while (table->slots[i].name != NULL)
        i = (i + 1) & (table->n_slots - 1);
    table->slots[i] = *slot;
}

static void grow(struct name_table *table)
{
    struct name_slot *old = table->slots;
    size_t n_old = table->n_slots;
    table->n_slots = n_old > 0 ? 2 * n_old : SLOTS_FIRST;
    table->slots = xcalloc(table->n_slots, sizeof(*table->slots));
    for (size_t i = 0; i < n_old; i++)
        if (old[i].name != NULL)
            insert(table, &old[i]);
    free(old);
}

void name_table_add(struct name_table *table, const char *name, size_t at)
{
    if (2 * (table->count + 1) > table->n_slots)
        grow(table);
    insert(table, &(struct name_slot){ name_hash(name), name, at });
    table->count++;
}

void name_table_clear(struct name_table *table)
{
    free(table->slots);
    *table = (struct name_table){ 0 };
}

/* SPDX-License-Identifier: MIT */
/* The core's two indexes: jobs by id (and in order of id), submit keys by hash. */
#include "controller/core/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"

#define ROWS_FIRST 256U

static struct core_entry *entry_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct core_entry, link);
}

static uint64_t hash_of(const struct map_link *link)
{
    return map_hash(entry_at(link)->job->id);
}

static const struct core_extra no_extra = { 0 };

const struct core_extra *core_extra(const struct core_entry *entry)
{
    return entry->extra != NULL ? entry->extra : &no_extra;
}

struct core_extra *core_make_extra(struct core_entry *entry)
{
    if (entry->extra == NULL) {
        entry->extra = xcalloc(1, sizeof(*entry->extra));
        *entry->extra = no_extra;
    }
    return entry->extra;
}

void core_admit_again(struct core_entry *entry)
{
    if (entry->extra == NULL)
        return;
    free(take_ptr(entry->extra->refused_by));
    entry->extra->refused_since_ms = entry->extra->readmits_ms = 0;
}

size_t job_table_after(const struct job_table *table, uint64_t id)
{
    size_t low = 0, high = table->n_rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->rows[middle].id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_row(struct job_table *table, const struct job *job)
{
    if (table->n_rows == table->rows_capacity) {
        table->rows_capacity = table->rows_capacity == 0 ? ROWS_FIRST : table->rows_capacity * 2;
        table->rows = xreallocarray(table->rows, table->rows_capacity, sizeof(*table->rows));
    }
    size_t at = job_table_after(table, job->id);
    memmove(&table->rows[at + 1], &table->rows[at], (table->n_rows++ - at) * sizeof(*table->rows));
    table->rows[at] = (struct job_row){ .id = job->id, .job = job };
}

static void remove_row(struct job_table *table, uint64_t id)
{
    size_t at = job_table_after(table, id) - 1, kept = 0;
    table->rows[at].job = NULL;
    if (table->n_rows < table->map.count * 2 + ROWS_FIRST)
        return;
    for (size_t i = 0; i < table->n_rows; i++)
        if (table->rows[i].job != NULL)
            table->rows[kept++] = table->rows[i];
    table->n_rows = kept;
}

struct core_entry *job_table_add(struct job_table *table, struct job *job)
{
    struct core_entry *entry = xcalloc(1, sizeof(*entry));
    entry->job = job;
    struct core_entry *before = table->last;
    while (before != NULL && before->job->id > job->id)
        before = before->before;
    entry->before = before;
    entry->after = before != NULL ? before->after : table->first;
    *(before != NULL ? &before->after : &table->first) = entry;
    *(entry->after != NULL ? &entry->after->before : &table->last) = entry;
    map_add(&table->map, &entry->link, hash_of);
    add_row(table, job);
    return entry;
}

static void entry_free(struct core_entry *entry)
{
    job_free(entry->job);
    spec_bytes_drop(entry->spec);
    job_usage_free(core_extra(entry)->usage);
    free(core_extra(entry)->refused_by);
    free(entry->extra);
    free(entry);
}

void job_table_remove(struct job_table *table, struct core_entry *entry)
{
    map_remove(&table->map, &entry->link, hash_of);
    *(entry->before != NULL ? &entry->before->after : &table->first) = entry->after;
    *(entry->after != NULL ? &entry->after->before : &table->last) = entry->before;
    remove_row(table, entry->job->id);
    entry_free(entry);
}

void job_table_clear(struct job_table *table)
{
    struct core_entry *entry = table->first;
    while (entry != NULL) {
        struct core_entry *after = entry->after;
        entry_free(entry);
        entry = after;
    }
    map_clear(&table->map, NULL);
    free(table->rows);
    *table = (struct job_table){ 0 };
}

/* The row of this key, or the empty row at which to insert it. */
static struct key_row *key_slot(struct key_row *rows, size_t n_rows, uint64_t key_hash)
{
    size_t at = key_hash % n_rows;
    while (rows[at].job != 0 && rows[at].key_hash != key_hash)
        at = (at + 1) % n_rows;
    return &rows[at];
}

const struct key_row *key_table_find(const struct key_table *table, uint64_t key_hash)
{
    if (table->n_rows == 0)
        return NULL;
    const struct key_row *row = key_slot(table->rows, table->n_rows, key_hash);
    return row->job != 0 ? row : NULL;
}

void key_table_add(struct key_table *table, uint64_t key_hash, uint64_t job, uint64_t spec_hash)
{
    if (table->count * 2 >= table->n_rows) {
        size_t n_rows = table->n_rows == 0 ? ROWS_FIRST : table->n_rows * 2;
        struct key_row *rows = xcalloc(n_rows, sizeof(*rows));
        for (size_t i = 0; i < table->n_rows; i++)
            if (table->rows[i].job != 0)
                *key_slot(rows, n_rows, table->rows[i].key_hash) = table->rows[i];
        free(table->rows);
        table->rows = rows;
        table->n_rows = n_rows;
    }
    struct key_row *row = key_slot(table->rows, table->n_rows, key_hash);
    table->count += row->job == 0;
    *row = (struct key_row){ .key_hash = key_hash, .job = job, .spec_hash = spec_hash };
}

void key_table_clear(struct key_table *table)
{
    free(table->rows);
    *table = (struct key_table){ 0 };
}

struct core_entry *core_find(const struct core *core, uint64_t id)
{
    const struct map_link *link = map_chain(&core->jobs.map, map_hash(id));
    while (link != NULL && entry_at(link)->job->id != id)
        link = link->next;
    return link != NULL ? entry_at(link) : NULL;
}

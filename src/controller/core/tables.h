/* SPDX-License-Identifier: MIT */
/* The core's two indexes: jobs by id (and in order of id), submit keys by hash. */
#pragma once

#include "controller/core/entry.h"

struct core;

struct job_row {
    uint64_t id;
    const struct job *job; // NULL: it was removed
};

/* The rows have all jobs in order of their ids, like the list from `first` to `last`. A scan that reads ahead
 * in them takes a tenth of the time of one along the list, where each job is a wait for memory. */
struct job_table {
    struct map map; // by id
    struct core_entry *first, *last;
    struct job_row *rows;
    size_t n_rows, rows_capacity; // at most about twice as many
};

size_t job_table_after(
    const struct job_table *table, uint64_t id); // the first row with a higher id, or n_rows

struct core_entry *core_find(const struct core *core, uint64_t id);
struct core_entry *job_table_add(struct job_table *table, struct job *job); // takes ownership of the job
void job_table_remove(struct job_table *table, struct core_entry *entry);   // frees it
void job_table_clear(struct job_table *table);

/* (uid, submit key) -> job, by hash. */
struct key_row {
    uint64_t key_hash, job, spec_hash;
};

struct key_table {
    struct key_row *rows; // open addressing; job 0 is empty
    size_t n_rows, count;
};

const struct key_row *key_table_find(const struct key_table *table, uint64_t key_hash);
void key_table_add(struct key_table *table, uint64_t key_hash, uint64_t job, uint64_t spec_hash);
void key_table_clear(struct key_table *table);

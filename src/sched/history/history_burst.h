/* SPDX-License-Identifier: MIT */
/*
 * Bursts: similar jobs submitted in quick succession (a loop, a sweep). The run times of ended members and
 * the elapsed times of running ones predict those of the others.
 */
#pragma once

#include <stdint.h>

#include "sched/history/history_cell.h"

struct burst_table;
struct burst;

struct burst_table *burst_table_new(void);
void burst_table_free(struct burst_table *table);

/* NULL: it does not exist any more. */
struct burst *burst_find(const struct burst_table *table, uint64_t number);

/* The burst of this class for a job submitted at this time, created if necessary; the job refers to it until
 * burst_leave(). 0: there are too many. */
uint64_t burst_join(struct burst_table *table, uint64_t class_hash, int64_t submit_ms);
void burst_hold(struct burst_table *table, struct burst *burst);
void burst_leave(struct burst_table *table, struct burst *burst);

/* A member has run past the start of bin `bin` (previously known: bin `known`), or has ended in bin `bin`. */
void burst_survived(struct burst *burst, unsigned known, unsigned bin);
void burst_ended(struct burst *burst, unsigned known, unsigned bin);

/* The number of ended members; *ret_running is the number known to be running. */
uint32_t burst_count(const struct burst *burst, uint32_t *ret_running);

/* Updates the distribution for any job of this kind to that of a member of the burst. */
void burst_belief(const struct burst_table *table, const struct burst *burst, struct run_belief *belief);

/* The bursts whose distributions change noticeably when this one changes, including itself. */
#define BURST_NEAR 7U
unsigned burst_near(struct burst *burst, struct burst *ret[BURST_NEAR]);

void **burst_owner(struct burst *burst); // a pointer for the owner

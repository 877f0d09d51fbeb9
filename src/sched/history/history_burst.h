/* SPDX-License-Identifier: MIT */
/*
 * Bursts: alike jobs that were submitted shortly after each other (a loop, a sweep), and what their members
 * tell of each other: how long those ran that have ended, and how long those have run that still do.
 */
#pragma once

#include <stdint.h>

#include "sched/history/history_cell.h"

struct burst_table;
struct burst;

struct burst_table *burst_table_new(void);
void burst_table_free(struct burst_table *table);

/* NULL: there is none, or no longer. */
struct burst *burst_find(const struct burst_table *table, uint64_t number);

/* The burst of this class of jobs that one submitted at that time belongs to, opened when it is new; the job
 * refers to it until burst_leave(). 0: there are too many. */
uint64_t burst_join(struct burst_table *table, uint64_t class_hash, int64_t submit_ms);
void burst_hold(struct burst_table *table, struct burst *burst);
void burst_leave(struct burst_table *table, struct burst *burst);

/* A member is known to run until after the start of bin `bin` (before: of bin `known`); it ended in bin
 * `bin`. */
void burst_survived(struct burst *burst, unsigned known, unsigned bin);
void burst_ended(struct burst *burst, unsigned known, unsigned bin);

/* Members that have ended, and that are known to run. */
uint32_t burst_count(const struct burst *burst, uint32_t *ret_running);

/* What is believed of a member, given what is believed of any job of its kind. */
void burst_belief(const struct burst_table *table, const struct burst *burst, struct run_belief *belief);

/* The bursts whose beliefs change noticeably by what is learnt in this one, itself among them. */
#define BURST_NEAR 7U
unsigned burst_near(struct burst *burst, struct burst *ret[BURST_NEAR]);

void **burst_owner(struct burst *burst); // a place for a pointer

/* SPDX-License-Identifier: MIT */
/*
 * Commands whose jobs could not be parked. Such a command is not asked again by the scheduler's own rule for
 * a while, which grows with each refusal: a driver that was busy or a node without memory may park it soon,
 * and a program that the driver does not support costs a few attempts in vain, by which it loses nothing. One
 * that was parked and could not return, and so was lost, is not asked again by itself. Both are over when a
 * job with the command has been parked and has returned, or when a test of parking has passed on a node.
 * Pure: the controller and a replay of its journal decide the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/record.h"

struct park_refusal {
    uint64_t command_hash;
    char *text;     // the latest reason
    uint32_t count; // pauses so far
    int64_t at_ms;  // wall clock: when the latest pause began; 0: an older version wrote this
    bool is_lost;   // a job with it was parked and could not return
};

extern const struct record_type park_refusal_record; // as a row of the store

struct park_refusals {
    struct park_refusal *items;
    size_t count;
};

/* NULL: no job with this command has refused. */
struct park_refusal *park_refusals_find(const struct park_refusals *refusals, uint64_t command_hash);

/* Adds a copy, or replaces the one of this command. If there are too many, the one with the earliest pause
 * goes: returns its hash, or 0. */
uint64_t park_refusals_put(struct park_refusals *refusals, const struct park_refusal *refusal);

/* A job with this command has refused, or is lost, at this time. A refusal within a pause begins no new one.
 * Returns what is to be put, whose text is borrowed. */
struct park_refusal park_refusals_next(const struct park_refusals *refusals, uint64_t command_hash,
    const char *text, bool is_lost, int64_t wall_ms);

/* False: there was none. */
bool park_refusals_drop(struct park_refusals *refusals, uint64_t command_hash);
void park_refusals_clear(struct park_refusals *refusals);

/* Wall clock: until when its command is not asked; INT64_MAX: until its row is dropped. */
int64_t park_refusal_until_ms(const struct park_refusal *refusal);

/* True while jobs with this command are not parked by the scheduler's own rule. */
bool park_refusals_bar(const struct park_refusals *refusals, uint64_t command_hash, int64_t wall_ms);

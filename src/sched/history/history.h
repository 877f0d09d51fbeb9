/* SPDX-License-Identifier: MIT */
/*
 * How long jobs take, learnt from those that have ended and from those that run: from the jobs submitted
 * together with it (its burst), from what was submitted shortly before and after, and from all earlier ones
 * of the same command, the user, everybody. Used for ordering and for forecasts only; a job is never ended
 * because it was expected to be over. Bounded: the least recently used goes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct history;

struct history_key {
    uint32_t uid, gid;
    uint64_t stem; // hash of what it runs
    uint32_t gpu_milli;
    int64_t limit_ms; // time limit as asked, 0: none
    uint64_t burst;   // from history_burst(), 0: none
};

enum history_basis {
    BASIS_NONE,
    BASIS_ALL,
    BASIS_USER,
    BASIS_USER_GPUS,
    BASIS_COMMAND,
    BASIS_COMMAND_LIMIT,
    BASIS_BURST,
};

/* What is wanted of an estimate; the rest costs time, and is 0. */
#define ESTIMATE_ORDER  1U
#define ESTIMATE_LIKELY 2U
#define ESTIMATE_SAFE   4U
#define ESTIMATE_INDEX  8U
#define ESTIMATE_ALL    15U

/* All but the last of the whole duration, more than what has elapsed. */
struct estimate {
    int64_t order_ms;  // for ordering: what minimises waiting
    int64_t likely_ms; // median
    int64_t safe_ms;   // mean, which a chance to run long rules; for what must not delay others
    enum history_basis basis;
    uint32_t samples; // that it rests on
    uint32_t running; // and jobs submitted with it that still run
    int64_t index_ms; // among jobs that can be interrupted: the least first; changes with the stage only
};

struct history *history_new(size_t max_cells, int64_t default_ms);
void history_free(struct history *history);

/* --- bursts --- */

/*
 * The burst that a job submitted at that time belongs to: the latest of its class of jobs when that was
 * submitted to just before, else a new one. `class_hash` stands for everything that makes jobs alike. The job
 * counts as a member until history_burst_leave(). 0: there are too many bursts, it belongs to none.
 */
uint64_t history_burst(struct history *history, uint64_t class_hash, int64_t submit_ms);
void history_burst_hold(struct history *history, uint64_t burst); // one more member, of a known burst
void history_burst_leave(struct history *history, uint64_t burst);

/* A pointer that the caller keeps with the burst, NULL at first; NULL too when there is no such burst. */
void history_burst_set_owner(struct history *history, uint64_t burst, void *owner);
void *history_burst_owner(const struct history *history, uint64_t burst);

/* The owners of the bursts whose estimates change by what was learnt in this one. */
#define HISTORY_NEAR 7U
size_t history_burst_near(const struct history *history, uint64_t burst, void *owners[HISTORY_NEAR]);

/* --- evidence --- */

#define HISTORY_STAGES 42U
/* How far a run has got, in steps of half an octave; 0 in the first 45 s, which tell little. */
unsigned history_stage(int64_t elapsed_ms);
int64_t history_stage_ms(unsigned stage); // when it began, of the elapsed time
/* When the next one begins, of the elapsed time; INT64_MAX: there is none. */
int64_t history_next_stage_ms(int64_t elapsed_ms);

/* A member of this burst, known to have got to stage `known` (0: nothing known), is now at `stage`. */
void history_survived(struct history *history, uint64_t burst, unsigned known, unsigned stage);

/* A job with this key, known to have got to stage `known`, ended after running so long. */
void history_add(struct history *history, const struct history_key *key, unsigned known, int64_t run_ms);

/* --- estimates --- */

/* Of a job that has run `elapsed_ms` already; `wanted`: bits of ESTIMATE_. */
void history_estimate(const struct history *history, const struct history_key *key, int64_t elapsed_ms,
    unsigned wanted, struct estimate *ret);

/* What outlives a restart, to be asked after every history_add() of this key: each cell that it has changed,
 * as (name, bytes) to be kept and given back, and with NULL for the bytes each cell that was forgotten for
 * it. */
void history_each_of(const struct history *history, const struct history_key *key,
    void (*visit)(void *arg, const char *name, const struct buffer *bytes), void *arg);
/* -EBADMSG when it is torn or not of that name. */
int history_decode(
    struct history *history, const char *name, const uint8_t *bytes, size_t length, struct error *err);

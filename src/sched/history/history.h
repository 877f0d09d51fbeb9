/* SPDX-License-Identifier: MIT */
/*
 * Predictions of run times, learnt from ended and running jobs: those submitted together (the burst), those
 * submitted shortly before and after, and all earlier ones of the same command, of the same user, and of all
 * users. Used only for ordering and forecasts; no job is ended because of them. Memory is bounded: the least
 * recently used entries are dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

struct history;

struct history_key {
    uint32_t uid, gid;
    uint64_t command_hash;
    uint32_t gpu_milli;
    int64_t limit_ms; // requested time limit, 0: none
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

/* The values of an estimate to compute; others cost time and are left 0. */
#define ESTIMATE_ORDER  1U
#define ESTIMATE_LIKELY 2U
#define ESTIMATE_SAFE   4U
#define ESTIMATE_INDEX  8U
#define ESTIMATE_ALL    15U

/* All but the last are of the whole duration and exceed the elapsed time. */
struct estimate {
    int64_t order_ms;  // for ordering: minimises waiting
    int64_t likely_ms; // median
    int64_t safe_ms; // mean, dominated by the possibility of a long run; for jobs that must not delay others
    enum history_basis basis;
    uint32_t samples; // number of runs it is based on
    uint32_t running; // running jobs of the same burst
    int64_t index_ms; // for preemptive ordering: lowest first; changes only with the stage
};

struct history *history_new(size_t max_cells, int64_t default_ms);
void history_free(struct history *history);

/* --- bursts --- */

/*
 * The burst of a job submitted at this time: the latest burst of its class if that is recent enough, else a
 * new one. `class_hash` identifies the properties that jobs must share. The job is a member until
 * history_burst_leave(). 0: there are too many bursts.
 */
uint64_t history_burst(struct history *history, uint64_t class_hash, int64_t submit_ms);
void history_burst_hold(struct history *history, uint64_t burst); // adds a member to an existing burst
void history_burst_leave(struct history *history, uint64_t burst);

/* A pointer stored with the burst for the caller, initially NULL; NULL also if the burst does not exist. */
void history_burst_set_owner(struct history *history, uint64_t burst, void *owner);
void *history_burst_owner(const struct history *history, uint64_t burst);

/* The owners of all bursts whose estimates are affected by a change in this one. */
#define HISTORY_NEAR 7U
size_t history_burst_near(const struct history *history, uint64_t burst, void *owners[HISTORY_NEAR]);

/* --- evidence --- */

#define HISTORY_STAGES 42U
/* How far a run has progressed, in half-octave steps; 0 in the first 45 s, which reveal little. */
unsigned history_stage(int64_t elapsed_ms);
int64_t history_stage_ms(unsigned stage); // elapsed time at which the stage begins
/* Elapsed time at which the next stage begins; INT64_MAX: there is none. */
int64_t history_next_stage_ms(int64_t elapsed_ms);

/* A member of this burst, previously known to have reached stage `known` (0: unknown), is now at `stage`. */
void history_survived(struct history *history, uint64_t burst, unsigned known, unsigned stage);

/* A job with this key, previously known to have reached stage `known`, has ended after this run time. */
void history_add(struct history *history, const struct history_key *key, unsigned known, int64_t run_ms);

/* --- estimates --- */

/* Of a job that has already run `elapsed_ms`; `wanted`: ESTIMATE_ bits. */
void history_estimate(const struct history *history, const struct history_key *key, int64_t elapsed_ms,
    unsigned wanted, struct estimate *ret);

/* A stored cell. */
extern const struct record_type history_cell_record;

/* Visits the data to store; call it after every history_add() of this key: each changed cell as (name,
 * bytes), and each cell dropped to make room with NULL for the bytes. */
void history_each_of(const struct history *history, const struct history_key *key,
    void (*visit)(void *arg, const char *name, const struct buffer *bytes), void *arg);
/* Restores a cell. -EBADMSG if it is damaged or does not match the name. */
int history_decode(
    struct history *history, const char *name, const uint8_t *bytes, size_t length, struct error *err);

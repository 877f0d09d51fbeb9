/* SPDX-License-Identifier: MIT */
/*
 * Who has used how much: GPU-seconds per user and per group, halved every half-life. Usage of running jobs is
 * counted continuously, in closed form, so that nothing is rewritten while time passes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct queue_class;

/* Limits of one user or group; 0: none. */
struct account_limits {
    uint32_t jobs;      // running at a time
    uint32_t gpu_milli; // GPUs held at a time, in thousandths
    double gpu_seconds; // used within the window (decayed usage; "GPU-hours")
};

struct account {
    uint32_t id; // uid or gid
    bool is_group;
    double shares; // weight, 1 unless configured
    double usage;  // GPU-seconds at `at_ms`, decayed
    int64_t at_ms;
    double rate;         // GPUs held now
    double held_seconds; // GPU-seconds held up to `held_at_ms`, not decayed; see fairshare_held()
    int64_t held_at_ms;
    double factor; // of the last look, for the scheduler; see fairshare_factor()
    struct account_limits limits;
    uint32_t running;             // jobs
    uint32_t gpu_milli;           // held
    uint32_t waiting;             // jobs
    bool is_counted;              // it has jobs and is in the total
    struct queue_class *classes;  // of a user: all of its classes
    size_t n_own;                 // of these: with an own priority (sched/sched_own.c)
    bool is_own_stale;            // that order is to be made anew
    struct queue_class *parked;   // classes at this account's limit
    struct account *chain, *next; // in its bucket; in order of creation
};

/* All users, or all groups, that have running or waiting jobs: kept up to date, so that the mean costs no
 * walk over accounts. */
struct fairshare_total {
    uint32_t accounts;
    double shares;
    double usage; // at `at_ms`, as in an account
    int64_t at_ms;
    double rate;
};

struct fairshare {
    double half_life_ms;
    struct fairshare_total users, groups;
    struct account **buckets;
    size_t n_buckets, n_accounts;
    struct account *first, *last;
    double default_user_shares, default_group_shares;
    struct account_limits user_limits, group_limits; // of new accounts
};

void fairshare_init(struct fairshare *fairshare, double half_life_ms);
void fairshare_clear(struct fairshare *fairshare);

/* The account, made when it is new. Never freed before fairshare_clear(). */
struct account *fairshare_account(struct fairshare *fairshare, uint32_t id, bool is_group);

/* Decayed GPU-seconds at this time. */
double fairshare_usage(const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* GPU-seconds that it has held since this object was made, not decayed: never less than at an earlier call.
 */
double fairshare_held(const struct account *account, int64_t now_ms);

/* Brings everybody's usage to this time, and decays with this half-life from now on. Also after the shares of
 * an account were set. */
void fairshare_settle(struct fairshare *fairshare, int64_t now_ms, double half_life_ms);

/* So many jobs more (or fewer) of this account run and wait. It counts for the mean while it has any. */
void fairshare_count(
    struct fairshare *fairshare, struct account *account, int64_t now_ms, int32_t running, int32_t waiting);

/* An attempt with so many thousandths of GPUs begins (+) or is over (-). */
void fairshare_charge(
    struct fairshare *fairshare, struct account *account, int64_t now_ms, int64_t gpu_milli);

/*
 * How far above its share an account is: log2((usage per share + floor) / (mean usage per share of accounts
 * that have jobs + floor)). 0 at its share, +1 at twice as much, -1 at half. Decay changes all alike, so that
 * the order of waiting jobs changes only when somebody's use does.
 */
double fairshare_factor(const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* The limits of this account, also before it has any job. */
const struct account_limits *fairshare_limits(const struct fairshare *fairshare, uint32_t id, bool is_group);

/* A job of so many GPUs can never start under these limits, whoever else ends. */
bool account_limits_exclude(const struct account_limits *limits, int64_t gpu_milli);

/* One more job of so many GPUs would break a limit: which, as a sentence in `text`; false: none. */
bool fairshare_is_limited(const struct fairshare *fairshare, const struct account *account, int64_t now_ms,
    uint32_t gpu_milli, char *text, size_t size);
/* When decay alone brings the usage below the limit on GPU-seconds; TIME_NEVER when that is not what limits
 * it. */
int64_t fairshare_limit_ends(
    const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* What outlives a restart: usage at a time. */
void account_encode(
    const struct fairshare *fairshare, const struct account *account, int64_t now_ms, struct buffer *out);
/* Into an account that has no jobs yet. -EBADMSG when it is torn. */
int account_decode(struct fairshare *fairshare, const uint8_t *bytes, size_t length, struct error *err);

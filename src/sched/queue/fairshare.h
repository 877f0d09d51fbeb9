/* SPDX-License-Identifier: MIT */
/*
 * Fair share: usage per user, group and department, with exponential decay. Usage of running jobs is computed
 * in closed form, so nothing is rewritten as time passes.
 *
 * Accounts form a tree: departments and groups without one at the top, below them the groups of each
 * department, below each group its users. Unless groups have configured shares, a group has those of its
 * users with jobs, so all users of a department, or of a machine without departments, are equal. An account
 * is compared with the other accounts below the same
 * parent that have jobs. The share of accounts without jobs is thereby lent to the others; an account that
 * lent its share is below it when it returns, and comes first.
 *
 * Accounts are charged for the dominant resource (Ghodsi et al., Dominant resource fairness, NSDI 2011): a
 * job's GPUs, or its CPUs or memory if they are a larger part of the cluster, converted to GPUs. Limits count
 * only GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/containers/map.h"
#include "base/error.h"

struct queue_class;

/* Limits of one user or group; 0: none. */
struct account_limits {
    uint32_t jobs;      // running jobs
    uint32_t gpu_milli; // GPUs held, in thousandths
    double gpu_seconds; // used within the window (decayed usage; "GPU-hours")
};

/* All children of an account, or all accounts at the top, that have running or waiting jobs. Updated
 * incrementally, so the mean needs no loop over accounts. */
struct fairshare_total {
    uint32_t accounts;
    double shares;
    double charged; // at `at_ms`, as in an account
    int64_t at_ms;
    double rate;
};

enum account_kind { ACCOUNT_USER, ACCOUNT_GROUP, ACCOUNT_DEPARTMENT };

struct account {
    uint32_t id; // uid, gid, or the number of a department
    enum account_kind kind;
    struct account *parent;          // NULL: at the top
    struct fairshare_total children; // those with jobs
    double shares;                   // weight, 1 unless configured; of a group perhaps that of its users
    double usage;                    // GPU-seconds at `at_ms`, decayed
    double charged;                  // the same of dominant resources
    int64_t at_ms;
    double rate, charge_rate; // GPUs held, and charged for
    double held_seconds;      // GPU-seconds held until `held_at_ms`, without decay; see fairshare_held()
    int64_t held_at_ms;
    double factor; // last value used by the scheduler; see fairshare_factor()
    struct account_limits limits;
    uint32_t running;            // running jobs
    uint32_t aside, aside_milli; // jobs that the scheduler has parked, and their GPUs: limits count them
    bool had_turn;      // it has had a head start, and other users may wait for theirs (sched/sched_rank.c)
    uint32_t gpu_milli; // GPUs held
    uint64_t charged_milli;      // and charged for
    uint32_t waiting;            // waiting jobs
    bool is_counted;             // it has jobs and is included in the total
    struct queue_class *classes; // of a user: all of its classes
    size_t n_own;                // of these: classes with an own priority (sched/sched_own.c)
    bool is_own_stale;           // their order must be recomputed
    struct queue_class *parked;  // classes held back by this account's limit
    struct map_link link;        // in fairshare->accounts
    struct account *next;        // in order of creation
};

struct fairshare {
    double half_life_ms;
    bool has_group_shares; // shares of groups are configured
    struct fairshare_total top;
    struct map accounts; // by id and kind
    struct account *first, *last;
    struct account_limits user_limits, group_limits; // defaults for new accounts
};

void fairshare_init(struct fairshare *fairshare, double half_life_ms);
void fairshare_clear(struct fairshare *fairshare);

/* The account, created if necessary. Not freed before fairshare_clear(). */
struct account *fairshare_account(struct fairshare *fairshare, uint32_t id, enum account_kind kind);

/*
 * Moves an account below another one (NULL: to the top). A department's usage and jobs are those of its
 * groups, which take theirs with them; a group keeps the usage of users who leave it.
 */
void fairshare_set_parent(
    struct fairshare *fairshare, struct account *account, struct account *parent, int64_t now_ms);

/* Decayed GPU-seconds at this time. */
double fairshare_usage(const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* GPU-seconds held since this object was created, without decay. Never decreases. */
double fairshare_held(const struct account *account, int64_t now_ms);

/* Updates all usage to this time; it decays with this half-life from now on. Also to be called after
 * shares or `has_group_shares` were set. */
void fairshare_settle(struct fairshare *fairshare, int64_t now_ms, double half_life_ms);

/* Changes the number of running and waiting jobs of this account. It is included in the mean while it has
 * any. */
void fairshare_count(
    struct fairshare *fairshare, struct account *account, int64_t now_ms, int32_t running, int32_t waiting);

/* An attempt that holds, and is charged for, this many thousandths of GPUs begins (+) or ends (-). */
void fairshare_charge(struct fairshare *fairshare, struct account *account, int64_t now_ms, int64_t gpu_milli,
    int64_t charged_milli);

/* The same for the charged usage: at least its usage. */
double fairshare_charged(const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/*
 * How far an account is above its share: log2((charged per share + floor) / (mean charged per share of the
 * accounts with jobs below the same parent + floor)). 0 at its share, +1 at twice, -1 at half. Decay affects
 * all accounts equally, so the order of waiting jobs changes only when usage does.
 */
double fairshare_factor(const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* The sum of the factors of the account and of those above it, which orders the queue. */
double fairshare_path_factor(
    const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* The part of the machine that it is entitled to while all accounts with jobs compete for it: the product of
 * its part of the shares below each parent up to the top. */
double fairshare_part(const struct fairshare *fairshare, const struct account *account);

/* The limits of this account, even if it has no jobs yet. */
const struct account_limits *fairshare_limits(
    const struct fairshare *fairshare, uint32_t id, enum account_kind kind);

/* The limits of accounts without their own; a department has none. */
struct account_limits fairshare_default_limits(const struct fairshare *fairshare, enum account_kind kind);

/* True if a job with this many GPUs can never start under these limits. */
bool account_limits_exclude(const struct account_limits *limits, int64_t gpu_milli);

/* True if one more job with this many GPUs would exceed a limit; `text` is a sentence that names it. */
bool fairshare_is_limited(const struct fairshare *fairshare, const struct account *account, int64_t now_ms,
    uint32_t gpu_milli, char *text, size_t size);
/* When decay alone reduces the usage below the limit of GPU-seconds; TIME_NEVER if another limit applies. */
int64_t fairshare_limit_ends(
    const struct fairshare *fairshare, const struct account *account, int64_t now_ms);

/* The data that is stored: usage at a time. */
void account_encode(
    const struct fairshare *fairshare, const struct account *account, int64_t now_ms, struct buffer *out);
/* Restores an account that has no jobs yet. -EBADMSG if the data is damaged. */
int account_decode(struct fairshare *fairshare, const uint8_t *bytes, size_t length, struct error *err);

/* SPDX-License-Identifier: MIT */
/*
 * The persistent store. A batch of changes (events, and the job rows that result from them) becomes durable
 * as a whole or not at all. Commits and reads are asynchronous: they run on the store's own thread, and
 * store_dispatch() delivers results on the caller's thread, in the order of the requests.
 *
 * A commit with an unknown outcome (COMMIT itself failed) is final: on_failed is called, the store refuses
 * everything afterwards, and the program must exit and recover by opening the store again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "job/job.h"
#include "store/store_progress.h"

/* The result of the latest whole check since this start (store_snapshot). */
struct store_verification {
    int64_t checked_ms;   // wall clock; 0: there was none yet
    uint32_t findings;    // 0: sound
    bool is_file_damaged; // pages or indexes, and not only contents of rows
    char finding[256];    // the first one
};

struct store;
struct store_batch;

struct store_observer {
    void *arg;
    void (*on_durable)(void *arg, uint64_t batch);
    /* The program must end. `batch` is the first one that may not be durable, 0 if a read failed. */
    void (*on_failed)(void *arg, uint64_t batch, const struct error *err);
    /* Nothing is lost, but an administrator should know, for example that a snapshot failed. May be NULL. */
    void (*on_warning)(void *arg, const struct error *err);
    /* A whole check has ended. May be NULL. */
    void (*on_verified)(void *arg, const struct store_verification *verification);
    /* Migration and snapshots: on the caller's thread in store_open, later on one that makes a snapshot. */
    struct store_progress progress;
};

/* The state found at a start. */
struct store_summary {
    uint64_t epoch;      // number of this start, already durable; increases with every open
    uint64_t last_job;   // highest id ever assigned
    uint64_t last_event; // highest event seq
    uint64_t jobs;       // rows in the jobs table
    bool is_old_copy;    // a snapshot, or a copy without its log: later changes are unknown
    char instance[33];   // random hexadecimal name of this store, assigned at its creation
};

/*
 * Opens DIR/mgpu.db, creating both if missing. All checks precede any write: takes the lock DIR/lock (-EBUSY:
 * used by another daemon), rejects network file systems (-EREMOTE) and a directory of another user (-EPERM),
 * checks integrity (-EUCLEAN: damaged, or missing although it existed before; never replaced by an empty
 * store) and the schema version (-ENOTSUP: created by a newer mgpu). Migrates an older version after a
 * snapshot, and begins a new epoch. After a restore, ids, events and epochs continue above all that the
 * original can have used. The observer is copied. mgpud itself calls store_open_leading(), which does the
 * same.
 */
int store_open(const char *dir, const struct store_observer *observer, struct store **ret,
    struct store_summary *ret_summary, struct error *err);

/* Waits for pending requests, then closes. Results not yet delivered by store_dispatch() are dropped. NULL is
 * allowed. */
void store_close(struct store *store);

/*
 * For the start, on the caller's thread: visits every job that is not done and the `recent_done` latest done
 * ones, ordered by id. The visitor owns each job.
 */
int store_load_jobs(struct store *store, size_t recent_done, void (*visit)(void *arg, struct job *job),
    void *arg, struct error *err);

/* Visits every valid submit key (younger than a week). `key_hash` is store_key_hash(). */
int store_load_keys(struct store *store,
    void (*visit)(void *arg, uint64_t key_hash, uint64_t job, uint64_t spec_hash), void *arg,
    struct error *err);

/* Visits every row of cluster_state, ordered by kind and key. Texts and bytes are valid only during the
 * visit. */
int store_load_state(struct store *store,
    void (*visit)(void *arg, const char *kind, const char *key, const uint8_t *bytes, size_t length),
    void *arg, struct error *err);

uint64_t store_key_hash(uint32_t uid, const char *key);

/* --- batches --- */

struct store_batch *store_batch_new(uint64_t id);
void store_batch_free(struct store_batch *batch);

/*
 * Adds one event and the resulting job (NULL for EVENT_CLUSTER). Everything is copied except `spec`, which is
 * shared and used only with EVENT_SUBMITTED, and not for an element of an array, whose spec is the array's.
 * The store derives from the event: specs and submit_keys (submitted), attempts and gpu_alloc (allocated),
 * and removed gpu_alloc rows (returned, requeued, ended). The database itself rejects a GPU slot allocated
 * twice, and shares of a GPU that exceed the whole.
 */
void store_batch_add(
    struct store_batch *batch, const struct job_event *event, const struct job *job, struct spec_bytes *spec);

/*
 * Writes or removes a row of cluster_state: the result of changes of the cluster, in the caller's own form,
 * so that a start need not fold all of them. Rows are written in the order of the calls, with the batch's
 * events.
 */
void store_batch_put(
    struct store_batch *batch, const char *kind, const char *key, const struct buffer *value);
void store_batch_remove(struct store_batch *batch, const char *kind, const char *key);

/* Advances job ids, events and epochs by this number, because the original may have used some that this store
 * does not know. */
void store_batch_skip(struct store_batch *batch, uint64_t gap);

/* Number of events and rows of cluster_state, plus 1 if numbers are skipped; for tests. */
size_t store_batch_count(const struct store_batch *batch);

/* Passes the batch to the store's thread, and its ownership to the store. */
void store_commit(struct store *store, struct store_batch *batch);

/* --- reading, results through store_dispatch(); NULL results mean "no such row" ---
 *
 * Each request is answered exactly once. Requests pending when the store closes, or after it failed, get an
 * empty answer within store_close(), so the caller can free its data for the answer. This includes requests
 * about tokens and the removal of nodes. */

/* For an element: the spec of its array; its own request is in the job. */
void store_fetch_spec(struct store *store, uint64_t job,
    void (*on_spec)(void *arg, uint64_t job, struct spec_bytes *spec),
    void *arg); // the callee releases the spec
void store_fetch_job(struct store *store, uint64_t job,
    void (*on_job)(void *arg, uint64_t job, struct job *row),
    void *arg); // the callee owns the job

#define STORE_ANY_USER (-1)

enum store_order { STORE_OLDEST_FIRST, STORE_NEWEST_FIRST };

struct store_ids_query {
    enum store_order order;
    uint64_t from;        // only higher ids, or with STORE_NEWEST_FIRST lower ones
    size_t most;          // jobs to examine; the store limits a large number
    int64_t uid;          // of this user, or STORE_ANY_USER
    const char *name;     // a pattern; NULL: any
    bool has_no_elements; // leaves out the elements of arrays
};

/* The ids of jobs that match, among the next ones in this order; `next` is the `from` of those after them, 0
 * after the last. The store owns the array. */
void store_fetch_ids(struct store *store, const struct store_ids_query *query,
    void (*on_ids)(void *arg, const uint64_t *ids, size_t count, uint64_t next), void *arg);

#define STORE_JOB_EVENTS_BYTES (1U << 20)

/* Up to `limit` events with seq > `after`, oldest first; `job` 0 means all jobs, otherwise the events of its
 * steps, and those beyond STORE_JOB_EVENTS_BYTES, are left out. The store owns the array. */
void store_fetch_events(struct store *store, uint64_t after, uint64_t job, size_t limit,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg);

/* The events from which the steps of a job fold (job/step.h), oldest first. */
void store_fetch_steps(struct store *store, uint64_t job,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg);

/* --- tokens for the API over TCP: only the SHA-256 of the secret is stored --- */

struct store_token {
    uint64_t id;
    uint32_t uid, gid;
    char *name;
    int64_t created_ms, expires_ms; // wall clock; 0: never
    uint32_t scopes;                // SCOPE_ bits: what it permits
    uint64_t max_gpu_ms;            // GPU time that its jobs may use together; 0: unlimited
};
#define STORE_USER_TOKENS_MAX 256

/* on_added gets id 0 and the reason if the token was refused: -EEXIST, the hash exists already; -ENOSPC, the
 * disk is full; -EUSERS, this user has STORE_USER_TOKENS_MAX that are valid; -ECANCELED, the store is closed.
 */
void store_add_token(struct store *store, const struct store_token *token, const uint8_t hash[32],
    void (*on_added)(void *arg, uint64_t id, int result), void *arg);
void store_find_token(struct store *store, const uint8_t hash[32], int64_t now_ms,
    void (*on_token)(void *arg, const struct store_token *token), void *arg);

/* The latest `limit` tokens of a user, or of STORE_ANY_USER, that are valid at `now_ms`, newest first. The
 * store owns the array. */
void store_list_tokens(struct store *store, int64_t uid, int64_t now_ms, size_t limit,
    void (*on_tokens)(void *arg, const struct store_token *tokens, size_t count), void *arg);

/* Removes a token if it belongs to that user, or to any with STORE_ANY_USER. on_revoked gets 0, -ENOENT if
 * there is no such token, or -ENOSPC if the disk is full. */
void store_revoke_token(struct store *store, uint64_t id, int64_t uid,
    void (*on_revoked)(void *arg, uint64_t id, int result), void *arg);

/* --- maintenance --- */

/* Becomes readable when store_dispatch() has results to deliver. */
int store_fd(const struct store *store);
void store_dispatch(struct store *store);

/* The same without pages of events and of ended jobs, each of which is long work for a single client. */
int store_prompt_fd(const struct store *store);
void store_dispatch_prompt(struct store *store);

/* True while free space is so low that new work must be refused (ends of jobs are still stored). Returns the
 * last check of the store's thread, and requests another. An idle store may not have detected yet that the
 * disk is full; a full one detects by itself that it no longer is. */
bool store_is_full(struct store *store);

/* For a full store: inodes are exhausted, not bytes. */
bool store_lacks_inodes(const struct store *store);

/*
 * Takes a snapshot to DIR/backup/, keeping the three latest: a consistent copy, checked like store_fsck()
 * does, on its own thread in parallel with commits. A copy with a finding is removed. The result of the
 * check goes to on_verified. Does nothing while one is being made, or so soon after the last that snapshots
 * would take more than a twentieth of the time. Closing the store drops the one being made.
 */
void store_snapshot(struct store *store);

/*
 * mgpud --fsck: checks integrity, then folds every event through job_apply and compares the results with the
 * tables. Opens read-only. Passes each finding to `report` as one sentence. Returns the number of findings or
 * a negative errno. `progress` may be NULL.
 */
int store_fsck(const char *dir, void (*report)(void *arg, const char *sentence), void *arg,
    const struct store_progress *progress, struct error *err);

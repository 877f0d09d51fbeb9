/* SPDX-License-Identifier: MIT */
/*
 * Durable truth. A batch of changes (events with the job rows they lead to) becomes durable as a whole or not
 * at all. Commits and reads are asynchronous: the work is done on the store's own thread, results are handed
 * over by store_dispatch() on the caller's thread, in the order in which they were asked for.
 *
 * A commit whose outcome is not known (COMMIT itself failed) is final: on_failed is called, the store refuses
 * everything from then on, and the program must end and recover by opening the store again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "job/job.h"

/* Ids, events and epochs that an older copy skips: more than were given out since. */
#define STORE_RESTORE_GAP 1000000

/* The result of the latest whole check since this start (store_snapshot). */
struct store_verification {
    int64_t checked_ms;   // wall clock; 0: there was none yet
    uint32_t findings;    // 0: sound
    bool is_file_damaged; // pages or indexes, and not only what the rows say
    char finding[256];    // the first one
};

struct store;
struct store_batch;

struct store_observer {
    void *arg;
    void (*on_durable)(void *arg, uint64_t batch);
    /* End the program. `batch` is the first one that is not known to be durable, 0 when reading failed. */
    void (*on_failed)(void *arg, uint64_t batch, const struct error *err);
    /* Nothing is lost, but a person should know, such as a snapshot that could not be made. May be NULL. */
    void (*on_warning)(void *arg, const struct error *err);
    /* A whole check has ended. May be NULL. */
    void (*on_verified)(void *arg, const struct store_verification *verification);
};

/* What a start finds. */
struct store_summary {
    uint64_t epoch;      // this start's number, already durable; grows with every open
    uint64_t last_job;   // highest id ever given out
    uint64_t last_event; // highest event seq
    uint64_t jobs;       // rows in the jobs table
    bool is_old_copy;    // a snapshot, or a copy without its log: what happened since is not known
    char instance[33];   // random hex name of this store, made at its creation
};

/*
 * Opens DIR/mgpu.db, making both when they are missing. Looks first and writes then: takes the lock DIR/lock
 * (-EBUSY: another daemon uses it), refuses network file systems (-EREMOTE) and a directory of another user
 * (-EPERM), checks integrity (-EUCLEAN: damaged, or it was there and is gone; never answered with an empty
 * store) and the schema version (-ENOTSUP: made by a newer mgpu). Migrates an older one after a snapshot, and
 * begins a new epoch. From a restored snapshot it goes on with ids, events and epochs beyond all that the
 * original can have given out. The observer is copied.
 */
int store_open(const char *dir, const struct store_observer *observer, struct store **ret,
    struct store_summary *ret_summary, struct error *err);

/* Waits for what was handed over, then closes. Answers that store_dispatch() has not fetched are dropped.
 * Safe on NULL. */
void store_close(struct store *store);

/*
 * Loading at start, on the caller's thread: every job that is not done and the `recent_done` latest that are,
 * in order of id. Each job becomes the visitor's.
 */
int store_load_jobs(struct store *store, size_t recent_done, void (*visit)(void *arg, struct job *job),
    void *arg, struct error *err);

/* Every submit key that still counts (younger than a week). `key_hash` is store_key_hash(). */
int store_load_keys(struct store *store,
    void (*visit)(void *arg, uint64_t key_hash, uint64_t job, uint64_t spec_hash), void *arg,
    struct error *err);

/* Every row of cluster_state in order of kind and key. The texts and bytes are good during the visit only. */
int store_load_state(struct store *store,
    void (*visit)(void *arg, const char *kind, const char *key, const uint8_t *bytes, size_t length),
    void *arg, struct error *err);

uint64_t store_key_hash(uint32_t uid, const char *key);

/* --- batches --- */

struct store_batch *store_batch_new(uint64_t id);
void store_batch_free(struct store_batch *batch);

/*
 * Adds one event and the job as it is after it (NULL for EVENT_CLUSTER). Everything is copied but `spec`,
 * which is shared and only
 * with EVENT_SUBMITTED, and not for an element of an array, whose specification is the array's. From the
 * event the store also keeps: specs and submit_keys (submitted), attempts and gpu_alloc (allocated), and
 * removes gpu_alloc rows (returned, requeued, ended). The database itself refuses a GPU slot given out twice,
 * and shares of one GPU that are more than the whole.
 */
void store_batch_add(
    struct store_batch *batch, const struct job_event *event, const struct job *job, struct spec_bytes *spec);

/*
 * Rows of cluster_state: what the cluster's changes have led to, in the caller's own form, so that a start
 * need not fold every change there ever was. They are written in the order of the calls, with the batch's
 * events.
 */
void store_batch_put(
    struct store_batch *batch, const char *kind, const char *key, const struct buffer *value);
void store_batch_remove(struct store_batch *batch, const char *kind, const char *key);

/* Job ids, events and epochs go on this much higher: some were given out that the store does not know. */
void store_batch_skip(struct store_batch *batch, uint64_t gap);

/* Events and rows of cluster_state, and 1 for numbers that are skipped. */
size_t store_batch_count(const struct store_batch *batch);

/* Hands the batch to the store's thread; the store owns it from here on. */
void store_commit(struct store *store, struct store_batch *batch);

/* --- reading, answers through store_dispatch(); NULL results mean "no such row" ---
 *
 * Each question is answered once. What was not when the store closes, or could not be because it failed, is
 * answered with nothing from within store_close(), so that whoever holds something for the answer can let it
 * go; so are those about tokens and the forgetting of nodes. */

/* Of an element: its array's specification; what it asks for is in its job. */
void store_fetch_spec(struct store *store, uint64_t job,
    void (*on_spec)(void *arg, uint64_t job, struct spec_bytes *spec),
    void *arg); // the callee drops the spec
void store_fetch_job(struct store *store, uint64_t job,
    void (*on_job)(void *arg, uint64_t job, struct job *row),
    void *arg); // the job becomes the callee's

/* Up to `limit` events with seq > `after`, oldest first; `job` 0 means all jobs, otherwise those of its steps
 * are left out. The array is the store's. */
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
};
/* on_added gets id 0 when it was refused: this hash is known already, or the disk is full. */
void store_add_token(struct store *store, const struct store_token *token, const uint8_t hash[32],
    void (*on_added)(void *arg, uint64_t id), void *arg);
void store_find_token(struct store *store, const uint8_t hash[32], int64_t now_ms,
    void (*on_token)(void *arg, const struct store_token *token), void *arg);

#define STORE_ANY_USER (-1)

/* The latest `limit` tokens of a user, or of STORE_ANY_USER, that are still good at `now_ms`, the newest
 * first. The array is the store's. */
void store_list_tokens(struct store *store, int64_t uid, int64_t now_ms, size_t limit,
    void (*on_tokens)(void *arg, const struct store_token *tokens, size_t count), void *arg);

/* Removes a token if it is that user's, or anybody's with STORE_ANY_USER. on_revoked gets 0, -ENOENT when
 * there is none such, -ENOSPC when the disk is full. */
void store_revoke_token(struct store *store, uint64_t id, int64_t uid,
    void (*on_revoked)(void *arg, uint64_t id, int result), void *arg);

/* --- housekeeping --- */

/* Readable when store_dispatch() has something to hand over. */
int store_fd(const struct store *store);
void store_dispatch(struct store *store);

/* True while so little space is left that new work must be refused (ends of jobs are still stored). Cheap. */
bool store_is_full(struct store *store);

/*
 * Takes a snapshot to DIR/backup/, keeping the three latest: copied on the store's thread between commits,
 * then checked as store_fsck() does on a thread of its own. A copy with a finding is removed. The result of
 * the check goes to on_verified. Nothing happens while one is being made, or so soon after the last that they
 * would take more than a twentieth of the time. A store that is closed drops the one being made.
 */
void store_snapshot(struct store *store);

/*
 * mgpud --fsck: integrity check, then folds every event through job_apply and compares with the tables. Opens
 * read-only. Each finding is one sentence through `report`. Returns the number of findings or a negative
 * errno.
 */
int store_fsck(
    const char *dir, void (*report)(void *arg, const char *sentence), void *arg, struct error *err);

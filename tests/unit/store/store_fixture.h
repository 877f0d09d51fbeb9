/* SPDX-License-Identifier: MIT */
/* A store in its own directory, and a caller that acts as the controller does: fold, batch, commit. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/store.h"

struct fixture {
    char dir[64];
    struct store *store; // NULL: not open
    struct store_summary summary;
    struct error err;
    uint64_t next_seq, next_job, next_batch;
    struct store_batch *batch; // being filled, or NULL
    /* What the observer heard. */
    uint64_t durable; // id of the latest durable batch
    bool is_out_of_order;
    bool has_failed;
    uint64_t failed_batch;
    struct error failure;
    struct store_verification verification; // once is_verified
    bool is_verified;
    _Atomic unsigned reports, ends; // counts progress, on other threads as well
    unsigned warnings;
    struct error warning;
    /* What fsck reported last. */
    char finding[512];
};

/* cmocka's setup and teardown: a fresh directory with an open store in it; all of it is removed. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Opens (a success is asserted) and closes the store. */
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture);

/* Opens again and returns what store_open says; the error is in fixture->err. */
int fixture_try_open(struct fixture *fixture);

/* A job in state queued whose submission is in the batch. `spec` may be NULL: one GPU, `true`. */
struct job *fixture_submit(struct fixture *fixture, const struct job_spec *spec);

/* Numbers the event, applies it to the job (which must be possible; NULL for a change of the cluster) and
 * adds both to the batch. */
void fixture_apply(struct fixture *fixture, struct job *job, struct job_event *event);

/* The same for the plain events of a job's life. */
void fixture_allocate(struct fixture *fixture, struct job *job, uint32_t gpu, uint32_t slot);
void fixture_event(struct fixture *fixture, struct job *job, enum job_event_type type);

/* Hands the batch over; returns its id. */
uint64_t fixture_commit(struct fixture *fixture);

/* Waits until the batch is durable or the store has failed; true when it is durable. */
bool fixture_wait(struct fixture *fixture, uint64_t batch);

/* fixture_commit and fixture_wait; durability is asserted. */
void fixture_commit_all(struct fixture *fixture);

/* Waits until the store has something to hand over, and takes it. */
void fixture_dispatch_once(struct fixture *fixture);

/* Dispatches until *flag is set. */
void fixture_dispatch_until(struct fixture *fixture, const bool *flag);

/* Takes a snapshot and waits for the result of its check, or for a warning. */
void fixture_snapshot(struct fixture *fixture);

/* The number of findings, which must be at least 0. */
int fixture_fsck(struct fixture *fixture);

/* A job through its whole life; jobs are freed. */
void fixture_run_job(struct fixture *fixture, uint32_t gpu);

/* Runs SQL on the database file over another connection, with triggers and foreign keys as they are; returns
 * SQLite's result code. */
int fixture_sql(struct fixture *fixture, const char *sql);
int64_t fixture_number(struct fixture *fixture, const char *sql);

/* DIR/NAME; valid until the next call. */
const char *fixture_path(struct fixture *fixture, const char *name);

/* A file of the store as bytes, and bytes in the place of a file. */
void fixture_keep(struct fixture *fixture, const char *name, struct buffer *ret);
void fixture_put(struct fixture *fixture, const char *name, const void *bytes, size_t length);

/* Leaves the files as a killed daemon would: copied while the store is open, which is closed then. */
void fixture_crash(struct fixture *fixture);

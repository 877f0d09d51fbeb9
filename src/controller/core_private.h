/* SPDX-License-Identifier: MIT */
/* The core's inside, shared by core_*.c and nobody else. */
#pragma once

#include "controller/core.h"
#include "sched/pass.h"
#include "sched/queue.h"

/* A job with what the controller needs around it. */
struct core_job {
    struct job *job;
    struct job_spec *spec;    // while resident; NULL: fetch it from the store when it is needed
    size_t spec_bytes;        // what it counts against RESIDENT_SPECS_MAX
    struct queue_entry entry; // waiting in the queue
    int64_t not_before_ms;    // boot clock; waits apart from the queue until then, 0: not at all
    uint64_t changed_in;      // batch of its latest change: it may be acted on when that one is durable
    int64_t grace_ms;         // of the latest cancel; -1: the default
    bool is_fetching;         // its spec was asked for
    struct core_job *before, *after;               // all jobs, in order of id
    struct core_job *active_before, *active_after; // jobs that hold resources
    struct core_job *done_after;                   // ended jobs still in memory, in order of their end
    struct core_job *chain;                        // in its bucket
};

struct job_table {
    struct core_job **buckets;
    size_t n_buckets, count;
    struct core_job *first, *last;
};

struct core_job *job_table_find(const struct job_table *table, uint64_t id);
struct core_job *job_table_add(struct job_table *table, struct job *job); // takes the job over
void job_table_remove(struct job_table *table, struct core_job *entry);   // and frees it
void job_table_clear(struct job_table *table);

/* (uid, submit key) -> job, by hash. */
struct key_row {
    uint64_t key_hash, job, spec_hash;
};

struct key_table {
    struct key_row *rows; // open addressing; job 0 is empty
    size_t n_rows, count;
};

const struct key_row *key_table_find(const struct key_table *table, uint64_t key_hash);
void key_table_add(struct key_table *table, uint64_t key_hash, uint64_t job, uint64_t spec_hash);
void key_table_clear(struct key_table *table);

/* What waits for a batch to be durable. */
enum held_kind { HELD_REPLY, HELD_ACT, HELD_PUBLISH, HELD_FORGET };

struct held {
    enum held_kind kind;
    void *request;              // reply; NULL when it was forgotten meanwhile
    struct core_answer *answer; // reply
    struct job_event event;     // publish, owned
    uint64_t job;               // act
    uint32_t link;              // forget
    struct message_forget forget;
    struct held *next;
};

struct batch {
    uint64_t id;
    bool is_urgent; // somebody waits for it; else it may gather more for LAZY_COMMIT_MS
    struct store_batch *changes;
    struct held *first, **last;
};

struct waiter {
    void *request;
    uint64_t job;
    uint32_t states;
    struct waiter *next;
};

struct core {
    struct core_options options;
    struct core_effects effects;
    struct job_table jobs;
    struct key_table keys;
    size_t n_undone; // jobs not done
    size_t n_done;   // done and still in memory
    struct core_job *active_first;
    size_t n_deferred; // jobs with not_before_ms
    struct core_job *done_first, *done_last;
    size_t resident_spec_bytes;
    struct cluster cluster;
    struct queue queue;
    struct core_node *nodes;
    size_t n_nodes;
    uint64_t epoch, last_job, last_event, last_durable_event;
    uint64_t last_batch, durable_batch;
    struct batch *open;   // gathers changes
    struct batch *flying; // handed to the store, NULL when none is
    struct waiter *waiters;
    bool is_dirty;    // a pass could start something
    int64_t armed_ms; // the timer, 0: none
};

/* --- core.c: changes and what waits for them --- */

/* The job is done: it stays in memory until enough later ones have ended. */
void core_note_done(struct core *core, struct core_job *entry);

/* The job holds resources: books them; and the reverse. */
void core_book(struct core *core, struct core_job *entry);
void core_release(struct core *core, struct core_job *entry);

/* Applies an event to its job and puts both into the open batch; `spec` only with EVENT_SUBMITTED. Aborts on
 * an event that the transition table refuses: callers check first. */
void core_change(struct core *core, struct core_job *entry, struct job_event *event, int64_t boot_ms,
    int64_t wall_ms, const struct job_spec *spec);

/* Answers now, or when what was applied so far is durable. */
void core_reply(struct core *core, void *request, const struct core_answer *answer);
void core_reply_ok(struct core *core, void *request, uint64_t job);

/* Tells the agent that it may drop an attempt, when that is durable. */
void core_forget_attempt(struct core *core, uint32_t link, const struct message_forget *forget);

/* Asks for core_timer() at that time, or earlier. */
void core_arm(struct core *core, int64_t boot_ms);

struct core_job *core_find(const struct core *core, uint64_t id);

/* --- core_schedule.c --- */
void core_enqueue(struct core *core, struct core_job *entry);

/* Keeps a queued job apart until then; 0: not any more. */
void core_defer(struct core *core, struct core_job *entry, int64_t until_ms);
void core_schedule(struct core *core, int64_t boot_ms, int64_t wall_ms);
int core_request(
    const struct core *core, const struct job *job, struct sched_request *ret, struct error *err);

/* --- core_actions.c: looks at a job's state and starts what is due; harmless to repeat --- */
void core_act(struct core *core, struct core_job *entry);
void core_keep_spec(struct core *core, struct core_job *entry, struct job_spec *spec); // takes it over
void core_drop_spec(struct core *core, struct core_job *entry);

/* --- core_nodes.c --- */
struct core_node *core_find_node(const struct core *core, const char *name);

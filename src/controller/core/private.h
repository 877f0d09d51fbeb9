/* SPDX-License-Identifier: MIT */
/* The core's inside, shared by the files of this folder and nobody else. */
#pragma once

#include "controller/core/core.h"
#include "sched/forecast.h"
#include "sched/sched.h"

/* A job's spec while it waits to be launched, encoded: so it takes a quarter of the memory. */
struct kept_spec {
    size_t length;
    uint8_t bytes[];
};

/* A job with what the controller needs around it. */
struct core_entry {
    struct job *job;
    struct core_extra *extra; // NULL: nothing of it was ever set; see core_extra()
    struct kept_spec *spec;   // while resident; NULL: fetch it from the store when it is needed
    uint64_t changed_in;      // batch of its latest change: it may be acted on when that one is durable
    struct core_entry *before, *after; // all jobs, in order of id
    struct core_entry *chain;          // in its bucket
    bool is_fetching;                  // its spec was asked for
};

/* What only jobs have that have a deadline, have got resources, have ended, or are arrays or elements: few of
 * those in memory when many wait. */
struct core_extra {
    int64_t due_ms;           // boot clock: its deadline while it waits, its time limit while it runs
    int64_t limit_ms;         // the time limit that due_ms follows from
    size_t timer;             // its place in the heap of those plus 1; 0: none is set
    int64_t active_ms;        // wall clock: since when it has resources, or mgpud runs
    int64_t stop_ends_ms;     // wall clock: when what is being stopped is killed at the latest
    uint64_t stop_token;      // of the attempt that this is about
    struct job_usage *usage;  // while it runs: what its agent said last; else NULL
    uint64_t usage_token;     // of the attempt that this is about
    struct core_parts *parts; // of an attempt on several nodes; else NULL
    struct core_entry *array, *members; // an element's array, while in memory; an array's elements
    struct core_entry *member_before, *member_after; // elements of the same array
    struct core_entry *active_before, *active_after; // jobs that hold resources
    struct core_entry *done_after;                   // ended jobs still in memory, in order of their end
};

/* To be read: what the job has, or what it begins with. */
const struct core_extra *core_extra(const struct core_entry *entry);
/* To be written: made when the job has none. */
struct core_extra *core_make_extra(struct core_entry *entry);

struct job_table {
    struct core_entry **buckets;
    size_t n_buckets, count;
    struct core_entry *first, *last;
};

struct core_entry *job_table_find(const struct job_table *table, uint64_t id);
struct core_entry *job_table_add(struct job_table *table, struct job *job); // takes the job over
void job_table_remove(struct job_table *table, struct core_entry *entry);   // and frees it
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
enum held_kind { HELD_REPLY, HELD_ACT, HELD_PUBLISH, HELD_FORGET, HELD_SIGNAL, HELD_STOP };

struct held {
    enum held_kind kind;
    void *request;              // reply; NULL when it was forgotten meanwhile
    struct core_answer *answer; // reply
    struct job_event event;     // publish, owned
    uint64_t job;               // act, signal
    uint32_t link;              // forget, stop
    struct message_forget forget;
    struct message_stop stop;
    struct message_signal signal;
    struct held *next;
};

struct batch {
    uint64_t id;
    bool is_urgent; // somebody waits for it; else it may gather more for LAZY_COMMIT_MS
    struct store_batch *changes;
    struct held *first, **last;
};

/* What the lists show of the future, for a moment. */
struct outlook {
    int64_t made_ms; // 0: none was made
    uint64_t event;  // the last one when it was made
    struct forecast likely, latest;
};

/* Where the time of the core is, see core/clock.c. */
struct core_clock {
    bool is_set, is_kept;
    bool has_stepped;       // forward, and deadlines have not been set anew
    int64_t offset_ms;      // to the boot clock
    int64_t kept_ms;        // the same as the store has it
    int64_t lead_ms;        // before the wall clock, when it was read last
    int64_t slowed_ms;      // boot clock: up to here it ran at half speed
    int64_t ahead_since_ms; // boot clock: since when the wall clock is well ahead; 0: it is not
};

struct core {
    struct core_options options;
    struct core_effects effects;
    const struct core_concern *const *concerns; // see core/concern.h; what each keeps, and it alone:
    struct core_limits *limits;
    struct core_quotas *quotas;
    struct core_schedule *schedule;
    struct waiter *waiters;
    struct core_loss *loss;
    struct job_table jobs;
    struct ask_shelf asks;
    struct key_table keys;
    size_t n_done; // done and still in memory
    struct core_entry *active_first;
    struct core_entry *done_first, *done_last;
    size_t resident_spec_bytes;
    struct sched *sched;
    struct core_node *nodes;
    size_t n_nodes;
    struct cluster_change *marks; // paused GPUs and drained nodes
    size_t n_marks;
    struct owner *owners; // which users numbers were, in order of number and job
    size_t n_owners;
    struct cluster_change *policies; // of GPUs that have one of their own
    size_t n_policies;
    struct cluster_change *faults; // of GPUs that mgpu has drained
    size_t n_faults;
    struct notices *notices; // NULL: there were none yet
    struct outlook outlook;
    uint64_t last_order;  // of a LAUNCH; the epoch is above its low half
    uint64_t first_event; // events up to here are of runs before this one
    int64_t began_ms;     // wall clock: this run
    uint64_t epoch, last_job, last_event, last_durable_event, last_reservation;
    uint64_t last_batch, durable_batch;
    struct batch *open;               // gathers changes
    struct batch *flying;             // handed to the store, NULL when none is
    struct lease_question *questions; // leases whose node was asked who their process is
    int64_t armed_ms;                 // the timer, 0: none
    /* The present turn; see core/turn.c. */
    int64_t boot_ms; // the latest that was told
    int64_t now_ms;  // of everything in this turn; 0: nothing has happened in it yet
    struct core_clock clock;
    bool is_store_old;    // an administrator is to look at the queue before anything starts
    int64_t last_ms;      // of the turn before
    int64_t last_boot_ms; // when that one ended
};

/* --- core/change.c --- */
/* Forgets the jobs that ended first, beyond the limit; the store still has them. */
void core_trim_done(struct core *core);

/* The job is done: it stays in memory until enough later ones have ended. */
void core_note_done(struct core *core, struct core_entry *entry);

/* Into the list of jobs that hold resources, and out of it. */
void core_activate(struct core *core, struct core_entry *entry);

/* Applies an event to its job, puts both into the open batch and tells the scheduler; `spec` only with
 * EVENT_SUBMITTED. Aborts on an event that the transition table refuses: callers check first. */
void core_change(
    struct core *core, struct core_entry *entry, struct job_event *event, const struct job_spec *spec);

/* The same for a change of the cluster, which was made already. */
void core_change_cluster(struct core *core, const struct cluster_change *change);

struct core_entry *core_find(const struct core *core, uint64_t id);

/* --- core/batch.c: what waits until it is durable --- */
struct batch *core_batch(struct core *core); // the open one
void core_batch_free(struct batch *batch);
void core_hold_back(struct core *core, struct held held);
void core_batch_durable(struct core *core, struct batch *batch); // frees it

/* Acts on the job when what was applied so far is durable; once, however often it is asked for till then. */
void core_act_later(struct core *core, struct core_entry *entry);

/* Answers now, or when what was applied so far is durable. */
void core_reply(struct core *core, void *request, const struct core_answer *answer);
void core_reply_ok(struct core *core, void *request, uint64_t job);
void core_forget_replies(struct core *core, const void *request); // the asker is gone

/* Tells the agent that it may drop an attempt, when that is durable. */
void core_forget_attempt(struct core *core, uint32_t link, const struct message_forget *forget);

/* --- core/clock.c: time --- */
/* When the core's time will be that, by the boot clock. */
int64_t core_boot_at(const struct core *core, int64_t at_ms);
void core_pass_at(struct core *core, int64_t now_ms); // of the scheduler; ends the turn

/* Something happens: takes the clocks, and does first what was due before. Then core->now_ms is the time of
 * it. */
void core_begin(struct core *core, int64_t boot_ms, int64_t wall_ms);
/* The time for a look that changes nothing. */
int64_t core_look_ms(const struct core *core, int64_t wall_ms);
/* Asks for core_timer() at that time, or earlier. */
void core_arm(struct core *core, int64_t boot_ms);

/* --- core/describe.c: a job in the scheduler's terms --- */
struct description {
    struct sched_job_spec spec;
    struct ask_after *after; // those not done yet, then those that can never come true
    size_t n_open;           // of the first kind
    uint64_t *unknown;       // of these, jobs that nobody knows the end of
    size_t n_unknown;
};

/* `facts` NULL: what is not in memory is unknown, and is waited for. */
int core_describe(const struct core *core, const struct job *job, const struct core_facts *facts,
    struct description *ret, struct error *err);
void description_clear(struct description *description);
bool core_is_ok(const struct job *job); // it is done, with exit status 0

/* --- core/schedule.c --- */
extern const struct sched_callbacks core_callbacks;
/* Hands a queued job to the scheduler; `is_known`: it has it already, and it has changed. */
void core_await_retry(struct core *core, const struct job *job);
void core_enqueue(struct core *core, struct core_entry *entry, const struct core_facts *facts, bool is_known);
/* It holds resources already, at a start. */
void core_resume(struct core *core, struct core_entry *entry);

/* --- core/arrays.c --- */
/* A new job for this element, linked to its array. */
struct core_entry *core_split(struct core *core, struct core_entry *array, uint32_t index);

/* --- core/clock.c --- */
int64_t core_clock_read(struct core *core, int64_t boot_ms, int64_t wall_ms); // the time of the core
void core_clock_keep(struct core *core);                                      // in the open batch
void core_clock_load(struct core *core, const uint8_t *bytes, size_t length);

/* --- core/stop.c --- */
void core_stop_job(struct core *core, struct core_entry *entry, uint32_t uid, enum job_end reason);

/* --- core/requests.c --- */
/* Answers a submit whose key was seen before. */
bool core_answer_repeated(
    struct core *core, const struct identity *who, const struct job_spec *spec, void *request);
/* The inside of core_submit. Returns the job, 0 when it was refused or repeated. */
uint64_t core_accept(struct core *core, const struct identity *who, struct job_spec *spec,
    const struct core_facts *facts, void *request);
int core_check_control(const struct core *core, const struct identity *who, uint64_t id,
    const struct core_entry *entry, struct error *err);
/* What it asks for, or what the site has for those that ask for nothing. */
int64_t core_limit_of(const struct core *core, const struct job_ask *ask);
int core_check_ask(
    const struct core *core, const struct identity *who, const struct job_ask *ask, struct error *err);
/* Does the priority that this caller asks for count among the owner's jobs alone? Nobody may go before other
 * users' jobs by a priority that is not theirs to give; `before`: the request until now, all zero: none. */
bool core_priority_is_own(const struct core *core, const struct identity *who, const struct job_ask *ask,
    const struct job_ask *before);

/* --- core/cluster.c --- */
void core_node_changed(struct core *core, struct core_node *node); // up, with what it said
void core_sampled(struct core *core, struct core_node *node);      // its GPUs are others, or in another state
void core_node_down(struct core *core, struct core_node *node);
void core_run_marks(struct core *core);                                     // those that end by themselves
int64_t core_next_mark(const struct core *core);                            // wall clock; TIME_NEVER
void core_set_mark(struct core *core, const struct cluster_change *change); // or takes it away
/* What a node has counts for what may be asked for, whether it is there or not. */
void core_keep_size(struct core *core, const struct cluster_change *change);
void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change);
void core_clear_marks(struct core *core);
void core_make_mark(struct core *core, const struct cluster_change *change); // and makes it durable
int core_check_admin(const struct core *core, const struct identity *who, const char *what, int64_t until_ms,
    struct error *err);
/* "node:0", or "0" on the only node. */
int core_find_gpu(const struct core *core, const char *text, struct core_node **ret_node,
    const struct gpu_state **ret, struct error *err);

/* --- core/restored.c: a store that is an older copy --- */
bool core_is_held(const struct core *core, const struct core_node *node);

void core_clear_watches(struct core_node *node);
struct gpu_watch *core_take_watch(struct core_node *node, const char *uuid);   // made when it is new
bool core_keep_policy(struct core *core, const struct cluster_change *change); // false: it has none now
void core_clear_policies(struct core *core);

/* core/release.c */
bool core_is_release_wished(
    const struct core *core, const struct core_node *node, const struct gpu_state *gpu);
bool core_is_released(const struct core *core, const struct core_node *node, const struct gpu_state *gpu);
void core_run_health(struct core *core);           // what is due by itself
int64_t core_next_health(const struct core *core); // wall clock; TIME_NEVER
#define CORE_KEPT_FAULT "gpu-fault"                // kind of its row
void core_keep_fault(struct core *core, const struct cluster_change *change);
bool core_end_fault(struct core *core, const char *node, const char *uuid); // false: it had none
void core_clear_faults(struct core *core);

/* --- core/owners.c --- */
void core_note_owner(struct core *core, uint32_t uid, uint64_t job); // it submits this one
void core_load_owners(struct core *core, const char *key, const uint8_t *bytes, size_t length);
void core_clear_owners(struct core *core);

/* --- core/reserve.c --- */
void core_unreserved(void *core, uint64_t reservation);

void core_configure_accounts(struct core *core);
void core_note_settings(struct core *core, bool is_live); // in the journal; live: not at a start

/* --- core/outlook.c --- */
void core_clear_outlook(struct core *core);

/* Is there for each node of the job an address that the others can reach? False with a node that has none. */
bool core_can_meet(const struct core *core, const struct job *job, const char **ret_node);
/* To the node of this rank. False: its request is not in memory, and was asked for. */
/* What the owner of a job is called on this machine; NULL: he has no name here. The caller frees it. */
char *core_user_name(struct core *core, uint32_t uid);
bool core_send_launch(struct core *core, struct core_entry *entry, uint32_t rank, uint32_t link);
void core_send_stop(struct core *core, const struct core_entry *entry, uint32_t rank, uint32_t link);
void core_send_terms(struct core *core, const struct job *job, uint32_t rank, uint32_t link);
/* False for one that is over a limit, or that the store has lost: it is sent without its request, and the
 * agent refuses it. */
bool core_decode_spec(const struct kept_spec *kept, struct job_spec *ret);
/* An element runs what its array was asked to run. */
struct core_entry *core_spec_owner(struct core_entry *entry);
bool core_has_room_for_specs(const struct core *core);
void core_keep_spec(
    struct core *core, struct core_entry *entry, struct job_spec *spec); // takes it over; NULL: lost
void core_drop_spec(struct core *core, struct core_entry *entry);

/* --- core/usage.c --- */
void core_take_usages(struct core *core, const struct record_list *usages); // struct attempt_usage
void core_drop_usage(struct core_entry *entry);

/* How long a job has between SIGTERM and SIGKILL when nobody says otherwise. */
int64_t core_grace_ms(const struct core *core, const struct job_ask *ask);

/* --- core/checkpoint.c --- */
bool core_is_checkpointing(const struct job *job); // it saves its work, and goes on later
int64_t core_stop_grace_ms(const struct core *core, const struct job *job);

/* --- core/idle.c --- */

void core_run_notices(struct core *core, int64_t now_ms); // tells what can be told now

/* --- core/node_table.c --- */
struct core_node *core_find_node(const struct core *core, const char *name);
struct core_node *core_find_link(const struct core *core, uint32_t link); // up, by its link
struct core_node *core_add_node(struct core *core, const char *name);     // found, or made and never heard of
/* Whether two boot ids of a node are of one start of its machine, with the same spool or not. */
bool core_is_same_boot(const char *id, const char *other);
void core_hear(struct core *core, struct core_node *node);        // it has said something
void core_acknowledge(struct core *core, struct core_node *node); // and is told that it was heard

/* --- core/link.c --- */
void core_drop_link(struct core *core, struct core_node *node); // its link is no more

/* --- core/attempt.c --- */
/* What every statement about an attempt begins with. */
struct statement {
    uint64_t job;
    uint32_t attempt, step, task;
    uint64_t token;
};
/* The attempt is over, as `event` tells; the driver's error that made it fail becomes its end. */
void core_close_attempt(struct core *core, struct core_entry *entry, struct job_event *event);
/* Its attempt is over, which nobody has seen: `text` says how that is known. */
void core_end_attempt(struct core *core, struct core_entry *entry, enum job_end end, const char *text);
/* It is proven never to have run. */
void core_give_back(struct core *core, struct core_entry *entry, const char *text);
/* The agent may drop this attempt as soon as what made it needless is durable. */
void core_forget_stated(struct core *core, const struct core_node *node, const struct statement *statement);
/* The job when the statement is about its present attempt and can still change it; else the agent may forget.
 */
struct core_entry *core_find_current(
    struct core *core, const struct core_node *node, const struct statement *statement);

/* --- core/unwanted.c: attempts that a node still has and no job wants --- */
void core_stop_unwanted(struct core *core, struct core_node *node); // after a HELLO

void core_await_nodes(struct core *core); // at a start: those that hold jobs have not spoken yet

/* SPDX-License-Identifier: MIT */
/*
 * A concern: one matter that follows from what happens to jobs, nodes and the clock, such as time limits,
 * lost nodes or notifications. It is one file and one row of the table in concerns.c. The core tells all of
 * them, in the order of the table, by these hooks; each may be NULL. A concern keeps its own state, changes
 * jobs by core_change() and the cluster by core_change_cluster(), and neither includes nor calls another
 * concern.
 */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* An event that has just been folded into its job. */
struct core_news {
    const struct job_event *event;
    const struct spec_bytes *spec; // of a submit: what was asked; NULL of an element
    enum job_state before;
};

/* Rows of the store that a concern keeps: one of these two reads one. The last has no kind. */
struct core_kind {
    const char *kind;
    int (*load)(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err);
    int (*load_change)(struct core *core, const struct cluster_change *change, struct error *err);
};

/* Messages of agents that a concern takes. Several may take the same. The last has no `take`. */
struct core_message {
    uint16_t id;
    void (*take)(struct core *core, struct core_node *node, const void *message);
};

struct core_concern {
    const char *name;

    /* --- its own life --- */
    void (*init)(struct core *core);
    void (*free)(struct core *core);

    /* --- a start --- */
    const struct core_kind *kinds;
    void (*load)(struct core *core, struct core_entry *entry);   // this job was read; others may follow
    void (*resume)(struct core *core, struct core_entry *entry); // all was read; of each job, in order of id
    void (*begin)(struct core *core);                            // of the core, after that

    /* --- jobs --- */
    /* Refuses a submit, with a sentence; `size`: bytes of the request in the store. */
    int (*check)(const struct core *core, const struct identity *who, const struct job_spec *spec,
        size_t size, struct error *err);
    /* What changes further jobs comes last in the table: the others then hear of its events after this one.
     */
    void (*event)(struct core *core, struct core_entry *entry, const struct core_news *news);
    /* The job's state is durable: tells its agents what they are to hear. Harmless to repeat. */
    void (*act)(struct core *core, struct core_entry *entry);
    void (*gone)(struct core *core, struct core_entry *entry); // it is about to leave memory

    /* --- attempts, each rank on its node --- */
    void (*usage)(struct core *core, struct core_entry *entry, const struct attempt_usage *usage);
    /* After the HELLO of a node on which this active job has a rank. */
    void (*reconcile)(struct core *core, struct core_entry *entry, const struct core_node *node);
    /* It is proven that this rank is over, and nobody knows how it ended. */
    void (*lost)(
        struct core *core, struct core_entry *entry, uint32_t rank, enum job_end end, const char *text);
    bool (*is_lost)(struct core_entry *entry, uint32_t rank); // it was told so
    /* The node has said that this attempt is over, or never was. */
    void (*over)(struct core *core, struct core_node *node, const struct message_release_attempt *attempt);

    /* --- nodes, in the order of a connection --- */
    const struct core_message *messages;
    void (*heard)(struct core *core, struct core_node *node); // any word of it
    void (*hello)(struct core *core, struct core_node *node); // believed, and nothing was answered yet
    void (*welcome)(const struct core *core, struct message_welcome *welcome); // the answer
    void (*up)(
        struct core *core, struct core_node *node, bool was_up); // and it was sent; was_up: a newer link
    void (*sample)(struct core *core, struct core_node *node);   // of its GPUs
    void (*close)(const struct core *core, const struct core_node *node, struct cluster_device *device);
    void (*back)(struct core *core, struct core_node *node); // all attempts there are reconciled
    void (*cut)(struct core *core, struct core_node *node, uint32_t link); // nothing is sent there any more
    void (*down)(struct core *core, struct core_node *node);               // it has no link now
    void (*mark)(struct core *core, const struct cluster_change *change);  // of the node, or of a GPU of it
    /* Whose the processes on its GPUs are has changed between two samples. */
    void (*processes)(struct core *core, struct core_node *node);

    /* --- requests and reservations --- */
    void (*unreserved)(struct core *core, uint64_t reservation); // the scheduler has ended it
    void (*forget)(struct core *core, const void *request);      // who asked is gone

    /* --- time --- */
    void (*stepped)(struct core *core);          // the core's time, forward
    void (*durable)(struct core *core);          // a batch is
    void (*turn)(struct core *core);             // its end, before the scheduler's pass
    int64_t (*next_ms)(const struct core *core); // boot clock: when it wants to run; TIME_NEVER
    void (*run)(struct core *core);              // what is due
};

/* The hooks of all concerns, in the order of the table. */
void core_set_concerns(struct core *core, const struct core_concern *const *rows); // the table
void core_init_concerns(struct core *core);
void core_free_concerns(struct core *core);
void core_hook_load(struct core *core, struct core_entry *entry);
void core_hook_resume(struct core *core, struct core_entry *entry);
void core_hook_begin(struct core *core);
void core_hook_event(struct core *core, struct core_entry *entry, const struct core_news *news);
void core_act(struct core *core, struct core_entry *entry);
void core_hook_gone(struct core *core, struct core_entry *entry);
void core_hook_usage(struct core *core, struct core_entry *entry, const struct attempt_usage *usage);
void core_reconcile(struct core *core, struct core_entry *entry, const struct core_node *node);
void core_hook_lost(
    struct core *core, struct core_entry *entry, uint32_t rank, enum job_end end, const char *text);
void core_hook_over(struct core *core, struct core_node *node, const struct message_release_attempt *attempt);
void core_hook_heard(struct core *core, struct core_node *node);
void core_hook_hello(struct core *core, struct core_node *node);
void core_hook_welcome(const struct core *core, struct message_welcome *welcome);
void core_hook_up(struct core *core, struct core_node *node, bool was_up);
void core_hook_sample(struct core *core, struct core_node *node);
void core_close_device(const struct core *core, const struct core_node *node, struct cluster_device *device);
void core_hook_back(struct core *core, struct core_node *node);
void core_hook_cut(struct core *core, struct core_node *node, uint32_t link);
void core_hook_down(struct core *core, struct core_node *node);
void core_hook_mark(struct core *core, const struct cluster_change *change);
void core_hook_processes(struct core *core, struct core_node *node);
void core_hook_unreserved(struct core *core, uint64_t reservation);
void core_hook_forget(struct core *core, const void *request);
void core_hook_stepped(struct core *core);
void core_hook_durable(struct core *core);
void core_hook_turn(struct core *core);
void core_run_due(struct core *core);

int core_check_concerns(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err);
bool core_is_rank_lost(const struct core *core, struct core_entry *entry, uint32_t rank);
const struct core_kind *core_find_kind(const struct core *core, const char *kind);
bool core_take_message(
    struct core *core, struct core_node *node, uint16_t id, const void *message); // false: nobody does
int64_t core_next_due(const struct core *core); // boot clock: the earliest next_ms

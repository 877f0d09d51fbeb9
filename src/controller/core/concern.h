/* SPDX-License-Identifier: MIT */
/*
 * A concern: one topic that follows from events of jobs, nodes and the clock, such as time limits, lost nodes
 * or notifications. It is one file and one row of the table in concerns.c. The core calls the hooks of all
 * concerns in the order of the table; each hook may be NULL. A concern keeps its own state, changes jobs with
 * core_change() and the cluster with core_change_cluster(), and neither includes nor calls another concern.
 */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* What an event is, and what it has done to its job: bits. A concern names those with which its hook `event`
 * is called. */
#define CORE_ON(type)    (UINT64_C(1) << (type)) // enum job_event_type
#define CORE_ON_STOPPING (UINT64_C(1) << 61)     // its attempt is being ended
#define CORE_ON_OVER     (UINT64_C(1) << 62)     // its attempt has ended
#define CORE_ON_DONE     (UINT64_C(1) << 63)     // it is done
#define CORE_ON_ALL      UINT64_MAX

/* An event that has just been folded into its job. */
struct core_news {
    const struct job_event *event;
    uint64_t bits;
    const struct spec_bytes *spec; // of a submit: the request; NULL for an element
    enum job_state before;
};

/* Rows of the store that belong to a concern; one of these two functions loads a row. The last has no
 * kind. */
struct core_kind {
    const char *kind;
    int (*load)(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err);
    int (*load_change)(struct core *core, const struct cluster_change *change, struct error *err);
};

/* Messages of agents handled by a concern. Several concerns may handle the same one. The last has no
 * `take`. */
struct core_message {
    uint16_t id;
    void (*take)(struct core *core, struct core_node *node, const void *message);
};

struct core_concern {
    const char *name;

    /* --- lifetime --- */
    void (*init)(struct core *core);
    void (*free)(struct core *core);

    /* --- a start --- */
    const struct core_kind *kinds;
    void (*load)(struct core *core, struct core_entry *entry); // this job was loaded; others may follow
    void (*resume)(
        struct core *core, struct core_entry *entry); // all jobs are loaded; called for each, ordered by id
    void (*begin)(struct core *core);                 // called once after that

    /* --- jobs --- */
    /* Refuses a submit, with a sentence; `size`: bytes of the request in the store. */
    int (*check)(const struct core *core, const struct identity *who, const struct job_spec *spec,
        size_t size, struct error *err);
    /* Refuses a request to change a job, with a sentence: an edit, a hold, a signal and so on, but no
     * cancel. */
    int (*check_change)(const struct core *core, const struct identity *who, struct error *err);
    /* A concern that changes further jobs comes last in the table, so that the others see those events after
     * this one. */
    uint64_t events; // for which `event` is called: it must not be 0
    void (*event)(struct core *core, struct core_entry *entry, const struct core_news *news);
    /* The job's state is durable: sends its agents the messages that follow. Idempotent. */
    void (*act)(struct core *core, struct core_entry *entry);
    void (*gone)(struct core *core, struct core_entry *entry); // it is about to be removed from memory

    /* --- attempts: one rank per node --- */
    void (*usage)(struct core *core, struct core_entry *entry, const struct attempt_usage *usage);
    /* After the HELLO of a node on which this active job has a rank. */
    void (*reconcile)(struct core *core, struct core_entry *entry, const struct core_node *node);
    /* This rank has provably ended, and its result is unknown. */
    void (*lost)(
        struct core *core, struct core_entry *entry, uint32_t rank, enum job_end end, const char *text);
    bool (*is_lost)(struct core_entry *entry, uint32_t rank); // `lost` was called for it
    /* The node has reported that this attempt has ended, or never existed. */
    void (*over)(struct core *core, struct core_node *node, const struct message_release_attempt *attempt);

    /* --- nodes, in the order of a connection --- */
    const struct core_message *messages;
    void (*contact)(struct core *core, struct core_node *node); // any message
    /* HELLO was accepted, and not answered yet; negative: the node is refused, and may try again. */
    int (*hello)(struct core *core, struct core_node *node, struct error *err);
    void (*welcome)(const struct core *core, struct message_welcome *welcome); // fills in the answer
    void (*up)(struct core *core, struct core_node *node,
        bool was_up); // called after the answer was sent; was_up: it replaces a link
    void (*sample)(struct core *core, struct core_node *node); // of its GPUs
    void (*close)(const struct core *core, const struct core_node *node, const struct core_gpu *gpu,
        struct cluster_device *device);
    void (*back)(struct core *core, struct core_node *node); // all attempts there are reconciled
    void (*cut)(struct core *core, struct core_node *node, uint32_t link); // no more messages are sent to it
    void (*down)(struct core *core, struct core_node *node);               // it has no link any more
    void (*mark)(struct core *core, const struct cluster_change *change);  // of the node, or of a GPU of it
    /* The attribution of GPU processes to jobs has changed between two samples. */
    void (*processes)(struct core *core, struct core_node *node);

    /* --- requests and reservations --- */
    void (*unreserved)(struct core *core, uint64_t reservation); // ended by the scheduler
    void (*forget)(struct core *core, const void *request);      // its client has left

    /* --- time --- */
    void (*stepped)(struct core *core); // the core's time has jumped forward
    void (*durable)(struct core *core); // a batch is durable
    bool (*turn)(struct core *core); // end of a turn, before the scheduler's pass; true: it has changed jobs
    int64_t (*next_ms)(const struct core *core); // boot clock: when `run` is due; TIME_NEVER
    void (*run)(struct core *core);              // handles what is due
};

/* For each hook that only has to be called: the function that calls those of all concerns, in the order of
 * the table, and the hook, its parameters and their names. */
// clang-format off
#define CORE_HOOKS(HOOK) \
    HOOK(core_init_concerns, init, (struct core *core), (core)) \
    HOOK(core_free_concerns, free, (struct core *core), (core)) \
    HOOK(core_hook_load, load, (struct core *core, struct core_entry *entry), (core, entry)) \
    HOOK(core_hook_resume, resume, (struct core *core, struct core_entry *entry), (core, entry)) \
    HOOK(core_hook_begin, begin, (struct core *core), (core)) \
    HOOK(core_act, act, (struct core *core, struct core_entry *entry), (core, entry)) \
    HOOK(core_hook_gone, gone, (struct core *core, struct core_entry *entry), (core, entry)) \
    HOOK(core_hook_usage, usage, \
        (struct core *core, struct core_entry *entry, const struct attempt_usage *usage), \
        (core, entry, usage)) \
    HOOK(core_reconcile, reconcile, \
        (struct core *core, struct core_entry *entry, const struct core_node *node), \
        (core, entry, node)) \
    HOOK(core_hook_lost, lost, \
        (struct core *core, struct core_entry *entry, uint32_t rank, enum job_end end, const char *text), \
        (core, entry, rank, end, text)) \
    HOOK(core_hook_over, over, \
        (struct core *core, struct core_node *node, const struct message_release_attempt *attempt), \
        (core, node, attempt)) \
    HOOK(core_hook_welcome, welcome, \
        (const struct core *core, struct message_welcome *welcome), \
        (core, welcome)) \
    HOOK(core_hook_up, up, (struct core *core, struct core_node *node, bool was_up), (core, node, was_up)) \
    HOOK(core_hook_sample, sample, (struct core *core, struct core_node *node), (core, node)) \
    HOOK(core_close_device, close, \
        (const struct core *core, const struct core_node *node, const struct core_gpu *gpu, \
            struct cluster_device *device), \
        (core, node, gpu, device)) \
    HOOK(core_hook_back, back, (struct core *core, struct core_node *node), (core, node)) \
    HOOK(core_hook_cut, cut, (struct core *core, struct core_node *node, uint32_t link), (core, node, link)) \
    HOOK(core_hook_down, down, (struct core *core, struct core_node *node), (core, node)) \
    HOOK(core_hook_mark, mark, (struct core *core, const struct cluster_change *change), (core, change)) \
    HOOK(core_hook_processes, processes, (struct core *core, struct core_node *node), (core, node)) \
    HOOK(core_hook_unreserved, unreserved, (struct core *core, uint64_t reservation), (core, reservation)) \
    HOOK(core_hook_forget, forget, (struct core *core, const void *request), (core, request)) \
    HOOK(core_hook_stepped, stepped, (struct core *core), (core)) \
    HOOK(core_hook_durable, durable, (struct core *core), (core)) \
    HOOK(core_run_due, run, (struct core *core), (core))
// clang-format on

#define DECLARE_HOOK(function, hook, parameters, names) void function parameters;
CORE_HOOKS(DECLARE_HOOK)
#undef DECLARE_HOOK

void core_set_concerns(struct core *core, const struct core_concern *const *rows); // the table
void core_hook_event(struct core *core, struct core_entry *entry, const struct core_news *news);
void core_hook_contact(struct core *core, struct core_node *node);
int core_hook_hello(struct core *core, struct core_node *node, struct error *err);
void core_hook_turn(struct core *core);

int core_check_concerns(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err);
int core_check_change(const struct core *core, const struct identity *who, struct error *err);
bool core_is_rank_lost(const struct core *core, struct core_entry *entry, uint32_t rank);
const struct core_kind *core_find_kind(const struct core *core, const char *kind);
bool core_take_message(struct core *core, struct core_node *node, uint16_t id,
    const void *message);                       // false: no concern handles it
int64_t core_next_due(const struct core *core); // boot clock: the earliest next_ms

/* SPDX-License-Identifier: MIT */
/* Bodies of the smaller requests, as record types (job/spec.h has the body of a submit). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"
#include "base/strings.h"

/* POST /jobs/ID/cancel */
struct cancel_request {
    int64_t grace_s; // between SIGTERM and SIGKILL; negative: the controller's default
    bool kill;       // of an adoption: also kill its process; else it is only released
    bool waiting;    // only if it waits; of an array: only the elements that wait
};

/* POST /tokens */
struct token_request {
    char *name;         // a label by which its owner recognises it
    uint64_t expires_s; // relative to now
    char *host; // how its user reaches this machine, for the address in the answer; NULL: by its host name
    struct strings scopes;  // "read", "submit", "control", "manage"; none: all
    uint32_t max_gpu_hours; // thousandths: total for all its jobs; 0: unlimited
};

/* POST /gpus/pause, /gpus/release, /gpus/resume, /nodes/NAME/drain, /nodes/NAME/resume */
struct mark_request {
    struct strings gpus; // "node:0" or "0"
    char *reason;
    int64_t until; // 0: until it is resumed
};

/* POST /gpus/policy */
struct policy_request {
    struct strings gpus; // "node:0" or "0"
    char *policy;        // "avoid", "fit-around", "ignore", "default"
};

/* POST /reservations */
struct reserve_request {
    uint32_t gpus;
    char *gpu_ids;
    struct strings users; // names or numbers
    int64_t from;         // 0: now
    int64_t for_s;
    char *name;
};

/* POST /jobs/ID/exec */
struct exec_request {
    struct strings command;
    struct strings env; // added to the job's own
    char *cwd;          // NULL: the job's
    bool tty;
    uint32_t rows, columns;
    uint32_t cpus;   // separate limit, below that of the job; 0: none
    uint64_t memory; // bytes, the same
    uint64_t key;    // chosen by the client, which can return by it; 0: it cannot
};

/* POST /jobs/ID/steps */
struct step_request_node {
    char *node;
    uint32_t tasks;
    uint32_t gpus; // 0: none requested
};

struct step_request {
    char *key;   // the client's random word: the same key means the same step
    bool resume; // the connection to this step was lost; begin no other
    char *name;
    uint32_t cpus_per_task; // 0: not requested
    uint64_t memory;        // of each node; 0: not requested
    bool exact;             // only what is requested, else all of its nodes
    bool overlap;           // share the nodes with all other steps
    struct record_list nodes;
};

/* POST /jobs/ID/steps/end */
struct step_end_request {
    uint32_t step;
    int32_t exit_code;
    uint32_t signal;    // that ended a task; 0: none
    bool cancelled;     // by its user
    bool out_of_memory; // the kernel has killed a task for lack of memory
    /* What the tasks have used, as their client reports it; 0: unknown. */
    uint64_t max_rss, ave_rss;   // bytes: of the task that had the most, and on average
    uint32_t max_rss_task;       // which one had the most
    uint64_t user_ms, system_ms; // CPU time of all tasks
};

/* POST /jobs/ID/steps/usage: usage of a running step. */
struct step_usage_request {
    uint32_t step;
    /* What the tasks have used, as their client reports it; 0: unknown. */
    uint64_t max_rss, ave_rss;   // bytes: of the task that had the most, and on average
    uint32_t max_rss_task;       // which one had the most
    uint64_t user_ms, system_ms; // CPU time of all tasks
};

/* POST /jobs/ID/steps/signal */
struct step_signal_request {
    uint32_t step;
    char *signal; // "USR1", or a number as text; NULL: end the step
};

/* POST /jobs/ID/hold, /jobs/ID/release: no parameters */
struct empty_request {
    bool unused;
};

/* POST /jobs/ID/signal */
struct signal_request {
    char *signal; // "USR1", or a number as text
    char *to;     // signal_scope_find(); NULL: those that handle it
};

/* POST /jobs/ID/requeue */
struct requeue_request {
    int64_t grace_s; // between SIGTERM and SIGKILL; negative: the job's, else the controller's default
    bool hold;       // it waits in the queue until it is released
};

/* POST /jobs/ID/park */
struct park_request {
    int64_t for_s; // it returns by itself after this time; 0: when requested
};

/* POST /jobs/ID/retry */
struct retry_request {
    char *submit_key; // as in a submit, or NULL
};

/* POST /acquire */
struct acquire_request {
    uint32_t pid, num_gpus;
};

/* POST /logins */
struct login_request {
    char *host;         // how the browser reaches this machine; NULL: by its name
    char *browser_user; // name or uid of the user whose browser it is for; NULL: the caller
};

/* POST /sessions */
struct session_request {
    char *login; // the secret of a one-time address
};

/* POST /nodes/tokens */
struct node_token_request {
    uint64_t expires_s; // relative to now
    char *host;         // how nodes reach this machine; NULL: by its host name
    char *node;         // only for a node with this name; NULL: any
    bool replace;       // may replace an existing node of this name
};

/* POST /nodes/NAME/forget */
struct forget_request {
    bool force; // even if it has jobs
};

extern const struct record_type login_request_record;
extern const struct record_type session_request_record;
extern const struct record_type acquire_request_record;
extern const struct record_type node_token_request_record;
extern const struct record_type forget_request_record;
extern const struct record_type retry_request_record;
extern const struct record_type signal_request_record;
extern const struct record_type park_request_record;
extern const struct record_type requeue_request_record;
extern const struct record_type cancel_request_record;
extern const struct record_type empty_request_record;
extern const struct record_type mark_request_record;
extern const struct record_type policy_request_record;
extern const struct record_type reserve_request_record;
extern const struct record_type token_request_record;
extern const struct record_type exec_request_record;
extern const struct record_type step_request_record;
extern const struct record_type step_end_request_record;
extern const struct record_type step_usage_request_record;
extern const struct record_type step_signal_request_record;

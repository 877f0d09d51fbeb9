/* SPDX-License-Identifier: MIT */
/* A core on a bench: its effects are written down, and the test plays store, agent and clients. */
#pragma once

#include "controller/core/core.h"
#include "controller/core/tables.h"
#include "unit_test.h"

#define BENCH_MAX 256U

struct answer {
    void *request;
    struct core_answer answer;
};

struct sent {
    uint16_t id;
    uint32_t link;
    uint64_t job;
    uint32_t attempt;
    uint64_t token;
    uint32_t n_gpus;
    bool has_spec;   // of a LAUNCH
    uint32_t signal; // of a STOP
    int64_t grace_ms;
    int64_t heartbeat_ms; // of a WELCOME
    uint32_t rank;
    uint32_t port;         // of a GO
    uint32_t number;       // of a PARK or an UPDATE
    uint32_t is_suspended; // of an UPDATE
    uint32_t action;       // of a PARK
    char user[32];         // of a LAUNCH
    uint32_t gid;          // of a LAUNCH
    bool is_early;         // of a LAUNCH
    uint64_t order;        // of a LAUNCH; the last one that a WELCOME tells of
    uint64_t event;        // of a LAUNCH, a WELCOME or a RELEASE_ATTEMPT
    uint64_t epoch;        // of a WELCOME
    int64_t began_ms;      // of a WELCOME
    char meeting[64];      // of a LAUNCH: the address of the first of several nodes
};

struct bench {
    struct core *core;
    struct store_batch *flying;    // handed to the store, not durable yet
    struct job *stored[BENCH_MAX]; // by id
    struct answer answers[BENCH_MAX];
    size_t n_answers;
    struct sent sent[BENCH_MAX];
    size_t n_sent;
    uint32_t published[BENCH_MAX]; // event types
    size_t n_published;
    uint32_t changes[BENCH_MAX]; // kinds of the published changes of the cluster
    size_t n_changes;
    uint64_t fetched; // latest job whose spec was asked for
    uint64_t asked;   // latest job whose end was asked for
    uint32_t closed;  // the link that was closed last
    struct core_options options;
    struct core_effects effects;
    int64_t armed_ms;
    int64_t now_ms;
    uint64_t last_random;
    const char *user; // name of user 1000
    uint32_t group;   // for which new jobs count; 0: that of the process
};

int bench_open(void **state);
/* The same, with node "box" on link 1, which has so many GPUs. */
int bench_open_with_one(void **state);
int bench_open_with_two(void **state);
int bench_open_with_four(void **state);
int bench_close(void **state);
/* The job as the store has it: what its durable events fold to. The caller owns it. */
struct job *bench_stored(struct bench *bench, uint64_t job);
/* Another core with the same options takes over, and knows of this job only, which it owns; NULL: of none. */
void bench_restart(struct bench *bench, struct job *job);
/* The same, and it knows of all jobs as the store has them, which bench_stored() no longer does. */
void bench_restart_all(struct bench *bench);
void bench_configure(struct bench *bench); // what its options say now holds from now on

/* A request that is complete, and its way through the core until all is settled. */
struct job_spec *bench_spec(const char *command);
void bench_submit_spec(struct bench *bench, const struct identity *who, struct job_spec *spec, void *request);

/* A request for this many GPUs by `uid`; `key` may be NULL. The request's address is its name in answers. */
void bench_submit(struct bench *bench, uint32_t uid, uint32_t gpus, const char *key, void *request);
void bench_turn(struct bench *bench);
/* What is under way becomes durable, and what follows from it, until nothing moves. */
void bench_settle(struct bench *bench);
/* So much time passes, and what is due by then settles. */
void bench_pass(struct bench *bench, int64_t ms);
/* The node on this link sends a message, and what follows settles. */
void bench_say(struct bench *bench, uint32_t link, uint16_t id, const void *message);

/* HELLO of node "box" with `gpus` GPUs on `link`; `known` attempts. */
int bench_hello(struct bench *bench, uint32_t link, const char *boot_id, uint32_t gpus,
    const struct known_attempt *known, size_t n_known);
/* The same of a node with this name. */
int bench_hello_as(struct bench *bench, uint32_t link, const char *node, uint32_t gpus);
/* The same of a node that was told of this state of a store, and knows of this attempt; NULL: of none. */
int bench_hello_seen(struct bench *bench, uint32_t link, uint64_t epoch, int64_t began_ms, uint64_t event,
    const struct known_attempt *known);
int bench_started(struct bench *bench, uint32_t link, const struct sent *launch);
int bench_exited(
    struct bench *bench, uint32_t link, const struct sent *launch, enum job_end end, int exit_code);
/* The node cannot run it. */
/* The node could not start it, for a cause of enum start_cause. */
int bench_troubled(struct bench *bench, uint32_t link, const struct sent *launch, uint32_t cause);
int bench_refused(struct bench *bench, uint32_t link, const struct sent *launch);
int bench_returned(struct bench *bench, uint32_t link, const struct sent *launch);

const struct core_answer *bench_answer(const struct bench *bench, const void *request); // NULL: none yet
const struct sent *bench_sent(const struct bench *bench, uint16_t id, uint64_t job);    // the latest, or NULL

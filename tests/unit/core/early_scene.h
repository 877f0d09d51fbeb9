/* SPDX-License-Identifier: MIT */
/* A core with a node "box" of one GPU that can start jobs early, and what its node says. A part of the tests
 * of early starts. */
#pragma once

#include "bench.h"

#include "controller/core/describe.h"
#include "controller/core/state.h"
#include "job/park.h"

#define SCENE_COMMAND "train"
#define SCENE_LINK    1U
#define SECOND_MS     INT64_C(1000)
#define MINUTE_MS     (60 * SECOND_MS)

extern const struct identity scene_owner, scene_admin;

/* The request of a job, besides its GPU. */
struct scene_job {
    int64_t limit_s, begin_s; // from now
    int priority;
    bool is_early, is_unwilling, is_held, goes_on;
    uint64_t memory;
    uint32_t cpu_milli;
    const char *command; // NULL: SCENE_COMMAND
};

int scene_open(void **state);
/* Also checks that the record of each job is what its stored events fold to. */
int scene_close(void **state);

/* Makes everything durable that is due now, and what follows from it. */
void scene_settle(struct bench *b);
/* Time passes, and each timer fires. */
void scene_pass(struct bench *b, int64_t seconds);
void scene_submit(struct bench *b, struct scene_job scene_job, void *request);
const struct job *scene_job(const struct bench *b, uint64_t id);
uint32_t scene_phase(const struct bench *b, uint64_t id);
/* The job's latest LAUNCH. */
struct sent scene_launch_of(const struct bench *b, uint64_t id);

/* --- the node says --- */
struct scene_node {
    uint32_t link;
    const char *name;
    bool lacks_early; // it can start no job early
    const struct known_attempt *known;
    size_t n_known;
};

int scene_hello(struct bench *b, struct scene_node node);
void scene_say(struct bench *b, uint16_t id, const void *message);
void scene_run(struct bench *b, uint64_t id);
void scene_end(struct bench *b, uint64_t id, enum job_end how, int exit_code);
void scene_answer(struct bench *b, uint64_t id, enum park_action action, enum park_outcome outcome);

/* The number of the order to give the job its GPU; 0: there was none since the last call. */
uint32_t scene_take_order(struct bench *b, uint64_t id);

/* It runs, without its GPU. */
void scene_expect_early(const struct bench *b, uint64_t id);
/* It is being given its GPU; the node says that it has. */
void scene_expect_granted(struct bench *b, uint64_t id);

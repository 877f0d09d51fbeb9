/* SPDX-License-Identifier: MIT */
/* A step of a running job: tasks on some of its nodes, with a share of the job's resources there. Events of
 * the job (EVENT_STEP_STARTED, EVENT_STEP_ENDED) begin and end it, and it ends with its attempt. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"
#include "job/state.h"

#define STEP_NAME_MAX  256U   // bytes
#define STEP_KEY_MAX   64U    // bytes
#define STEP_TASKS_MAX 65536U // of one step
#define STEPS_MAX      10000U // of one attempt
#define STEPS_OPEN_MAX 512U   // of one attempt: those that run or wait

struct job_event;

/* A node of the step. */
struct job_step_node {
    char *node;
    uint32_t rank; // of the node in the job
    uint32_t tasks;
    uint32_t gpus;    // 0: none requested, its tasks see those of the job
    char *gpu_places; // positions of its GPUs among those of the job there: "0,2"
};

struct job_step {
    uint32_t id; // 0 is the first of its attempt
    char *name;
    char *key;                // the client's random word, to recognize a repeated request
    uint32_t cpus_per_task;   // 0: not requested
    uint64_t memory;          // of each node, bytes; 0: not requested
    bool exact;               // only the requested resources, else all of its nodes
    bool overlap;             // shares its nodes with all other steps
    struct record_list nodes; // struct job_step_node
    int64_t started_ms;       // wall clock
    /* When it has ended. */
    int64_t ended_ms; // wall clock; 0: it runs
    uint32_t end;     // enum job_end: exit, signal, cancelled (with its attempt), or unknown
    int32_t exit_code;
    uint32_t signal;
    /* Resource usage of the tasks, as reported by their client; 0: unknown. */
    uint64_t max_rss, ave_rss;   // bytes: maximum over the tasks, and average
    uint32_t max_rss_task;       // which one had the most
    uint64_t user_ms, system_ms; // CPU time of all tasks
};

/* The data about a job's steps that a start of mgpud needs: a row of the store. */
struct job_steps {
    uint32_t attempt;
    uint32_t begun;           // the number of the next one
    struct record_list steps; // struct job_step: those that run
};

extern const struct record_type job_step_record;
extern const struct record_type job_steps_record;

uint32_t job_step_tasks(const struct job_step *step);

/* True if the step has the GPU at this position among those of the job. */
bool job_step_has_gpu(const struct job_step_node *node, uint64_t place);

/* Takes over the usage of the tasks from `from`. */
void job_step_set_usage(struct job_step *step, const struct job_step *from);

/* Folds an event of the job into the list of the steps that it had: one begins or ends, or all end with their
 * attempt. `attempts` has the attempt of each step, and grows with the list. */
struct job_step_history {
    struct record_list steps;
    uint32_t *attempts;
};

void job_step_history_apply(struct job_step_history *history, const struct job_event *event);
void job_step_history_clear(struct job_step_history *history);

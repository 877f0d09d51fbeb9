/* SPDX-License-Identifier: MIT */
/*
 * A step: srun inside a job. Its tasks are processes of the job. Those of this node are children of srun,
 * those of other nodes are started by mgpud's exec; either way a child of srun stands for the task.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/slurm/submit.h"

struct step_task {
    uint32_t id, node, local; // its number, that of its node in the step, and its number there
    pid_t pid;                // 0: not started, or over
    int status;               // as from waitpid(2), when it is over
    int pipe_fd;              // its output, for labels; -1: none
};

struct step {
    const struct slurm_job *job;
    char *const *command;
    struct strings nodes; // names of the nodes of the step
    uint32_t *ranks;      // of those nodes in the job
    uint32_t here;        // rank of this node
    struct step_task *tasks;
    uint32_t count;
    uint64_t job_id;
    const json_t *record; // as mgpud shows the step; NULL: it is not recorded
};

/* Which tasks run where, from the options and the allocation (SLURM_JOB_NODELIST and others). */
int step_plan(struct step *step, const struct slurm_job *job, char *const *command, struct error *err);
void step_clear(struct step *step);

/* Of a node of the step: its tasks, and how many GPUs were requested there (0: none). */
uint32_t step_tasks_on(const struct step *step, uint32_t node);
int64_t step_gpus_on(const struct step *step, uint32_t node);

/* The number of the step, once it is recorded; else 0. */
int64_t step_id(const struct step *step);

/* Variables of one task, set over those of the job. */
void step_environment(const struct step *step, const struct step_task *task, struct strings *ret);

/* "out_%t.log" of one task. The caller frees it. */
char *step_path(const struct step *step, const struct step_task *task, const char *pattern);

/* Runs all tasks; the highest exit status. */
int step_run(struct step *step, struct error *err);

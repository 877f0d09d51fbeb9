/* SPDX-License-Identifier: MIT */
/*
 * A step: srun inside a job. Its tasks are processes of the job. Tasks on this node are children of srun;
 * those on other nodes are started with mgpud's exec and represented by a child of srun.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/submit/slurm_job.h"

struct step_task {
    uint32_t id, node, local; // number of the task, of its node in the step, and of the task on that node
    pid_t pid;                // 0: not started, or ended
    int status;               // as from waitpid(2), once ended
    int pipe_fd;              // its output, for labels; -1: none
    char *const *command;     // terminated by NULL
};

struct step {
    const struct slurm_job *job;
    char *const *command;
    struct strings nodes; // names of the nodes of the step
    uint32_t *ranks;      // ranks of those nodes in the job
    uint32_t here;        // rank of this node
    struct step_task *tasks;
    uint32_t count;
    uint64_t job_id;
    bool has_ended_first; // one of its tasks has ended
    int64_t late_ms;      // boot time at which --wait ends the others; 0: never
    const json_t *record; // as mgpud shows the step; NULL: it is not recorded
};

/* Distributes tasks to nodes according to the options and the allocation (SLURM_JOB_NODELIST and others). */
int step_plan(struct step *step, const struct slurm_job *job, char *const *command, struct error *err);
void step_clear(struct step *step);

/* Of a node of the step: its tasks, and how many GPUs were requested there (0: none). */
uint32_t step_tasks_on(const struct step *step, uint32_t node);
int64_t step_gpus_on(const struct step *step, uint32_t node);

/* The number of the step, once it is recorded; else 0. */
int64_t step_id(const struct step *step);

/* Variables of one task, in addition to those of the job. */
void step_environment(const struct step *step, const struct step_task *task, struct strings *ret);

/* "out_%t.log" for one task. The caller frees it. */
char *step_path(const struct step *step, const struct step_task *task, const char *pattern);

/* Runs all tasks; returns the highest exit status. */
int step_run(struct step *step, struct error *err);

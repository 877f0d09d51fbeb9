/* SPDX-License-Identifier: MIT */
/*
 * A step: srun inside a job. Its tasks are processes of the job. Tasks on this node are children of srun. On
 * other nodes, or if the step has its own limits or uses MPI, they are children of a slurmstepd
 * (compat/stepd); on another node or with limits, mgpud's exec starts it.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/submit/slurm_job.h"
#include "compat/stepd/frames.h"

#define STEP_OUTSIDE UINT32_MAX // no rank: srun is outside the job's nodes, for example below salloc

struct step_task {
    uint32_t id, node, local; // number of the task, of its node in the step, and of the task on that node
    bool is_running, is_out_of_memory;
    pid_t pid;            // 0: it is not a child of srun, or has ended
    int status;           // as from waitpid(2), after its end
    int pipe_fds[2];      // its output and error output, for labels; -1: none
    int input_fd;         // where srun writes its standard input; -1: none
    int files[2];         // for its output and error output, if srun writes them; -1: srun's own
    char *const *command; // terminated by NULL
    struct step_usage usage;
};

struct step_peer;
struct step_gathers;

struct step {
    const struct slurm_job *job;
    char *const *command;
    struct strings nodes; // names of the nodes of the step
    uint32_t *ranks;      // ranks of those nodes in the job
    uint32_t here;        // rank of this node
    struct step_task *tasks;
    uint32_t count;
    uint64_t job_id;
    struct step_peer *peers; // of each node
    struct step_gathers *gathers;
    bool has_ended_first;   // one of its tasks has ended
    bool is_ending;         // its tasks have been told to end
    bool is_end_shown;      // and the user has been informed of the end of the job
    bool is_late;           // --wait has ended the remaining tasks
    int64_t late_ms;        // boot time at which --wait ends the others; 0: never
    int64_t kill_ms;        // boot time at which they are killed; 0: never
    int64_t limit_ms;       // boot time at which --time expires; 0: never, or already reported
    int64_t interrupted_ms; // boot time of the last Ctrl-C; 0: none
    int64_t started_ms;     // boot time
    uint32_t samples;       // of its usage
    uint64_t oom_kills;     // on srun's node: kills that happened before, or of tasks that have ended
    const json_t *record;   // the record in mgpud; NULL: the step is not recorded
};

/* Distributes tasks to nodes according to the options and the allocation (SLURM_JOB_NODELIST and others). */
int step_plan(struct step *step, const struct slurm_job *job, char *const *command, struct error *err);
void step_clear(struct step *step);

/* For a node of the step: its number of tasks, and how many GPUs were requested there (0: none). */
uint32_t step_tasks_on(const struct step *step, uint32_t node);
int64_t step_gpus_on(const struct step *step, uint32_t node);

/* True if the step gets only the CPUs that it requests. */
bool step_is_exact(const struct slurm_job *job);

/* Bytes of memory that the step requests per node; 0: the job's memory. */
uint64_t step_memory_on(const struct step *step, uint32_t node);

/* The number of the step after it was recorded; else 0. */
int64_t step_id(const struct step *step);

/* Variables of one task, in addition to those of the job. */
void step_environment(const struct step *step, const struct step_task *task, struct strings *ret);

/* "out_%t.log" for one task. The caller frees it. */
char *step_path(const struct step *step, const struct step_task *task, const char *pattern);

/* With --verbose, prints the job and the nodes of the tasks on standard error. */
void step_print(const struct step *step);

/* Runs all tasks; returns the highest exit status. */
int step_run(struct step *step, struct error *err);

/* Ends the step: SIGTERM now, SIGKILL after KillWait. Only the first call has an effect. */
void step_terminate(struct step *step);

/* The number of tasks that the kernel has killed for lack of memory. */
uint32_t step_count_out_of_memory(const struct step *step);

/* Called when a task has ended. */
void step_task_end(struct step *step, struct step_task *task, int status);

/* SPDX-License-Identifier: MIT */
/* The options of sbatch, srun and salloc, and the resulting request. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strings.h"
#include "cli/submit/slurm_option.h"
#include "cli/submit/submit.h"

#define SLURM_UNSET (-1)

struct slurm_job {
    struct call call; // a call of cli/submit; its options are `submit`
    struct submit_options submit;
    struct strings kept;  // owner of texts used by the options
    struct strings notes; // of job/slurm.h
    /* SLURM_UNSET: not specified. */
    int64_t nodes, tasks, tasks_per_node, cpus_per_task, cpus_per_gpu, tasks_per_gpu;
    int64_t gpus, gpus_per_node, gpus_per_task, gpus_per_socket, sockets, time_s, nice;
    int64_t least_cpus;                              // --mincpus: of each node
    int64_t immediate_s;                             // it ends if it has not started by then
    int64_t immediate_until_ms;                      // when that will be, wall clock
    uint64_t memory, memory_per_cpu, memory_per_gpu; // bytes; 0: not specified
    unsigned memory_options;                         // which of these three the command line has, as bits
    char *gpu_model;
    const char *output, *error, *input, *open_mode, *signal, *nodelist, *exclude, *constraint, *distribution;
    struct strings task_nodes; // with the arbitrary distribution, the node of each task
    const char *program;       // whose name begins its messages
    const char *wrap, *name, *mail_user;
    const char *insert; // --bbf: a file for the start of the script; NULL: none
    char *mail_on;
    struct strings defined; // NAME=VALUE of the options of the command line, for --verbose
    bool ignores_foreign;   // #PBS and #BSUB lines of a script
    bool is_parsable, is_waited, is_tested, is_quiet, is_verbose;
    /* Of srun. */
    bool is_labelled, is_killed_on_exit, is_on_terminal, is_overlapping, is_exact, is_exclusive,
        has_multiple_programs;
    bool is_status_off;          // Ctrl-C ends the step at once
    bool keeps_counts;           // -E: SLURM_NNODES and SLURM_NTASKS of the job, not of the step
    const char *prolog, *epilog; // programs that srun runs before and after the step; NULL: none
    int64_t relative, job_id, wait_s;
    const char *mpi;      // --mpi; NULL: none
    const char *gpu_bind; // --gpu-bind, or NULL
    const char *command;  // for salloc --no-shell: NULL
    bool is_without_shell;
    int64_t least_s;               // of --time-min; 0: none
    int64_t begin_ms, deadline_ms; // wall clock; 0: none
    const char *refusal;           // of a value that slurmctld refuses, in its words; NULL: none
    int kill_signal;               // salloc --kill-command; 0: none
};

/* Converts "afterok:12:13,after:14+10" to "after" of the API; *ret is NULL for an empty value. */
int slurm_parse_dependency(const char *value, char **ret, struct error *err);

/* The options of sbatch, srun and salloc. */
extern const struct slurm_option slurm_submit_options[];

/* Warns on standard error that there are fewer tasks than nodes, and that the other nodes are not used. */
void slurm_job_warn_few_tasks(int64_t tasks, int64_t nodes, const char *program);

void slurm_job_init(struct slurm_job *job);
void slurm_job_clear(struct slurm_job *job);

/* A slurm_record_fn for options that have taken effect: those that Slurm shows to the job as a variable are
 * added to its environment. */
void slurm_job_show(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value);

/* With --verbose, prints the options of the command line in Slurm's form on standard error. */
void slurm_job_print_options(const struct slurm_job *job, const char *program);

/* With --verbose twice, prints the steps of a command on standard error in Slurm's form: "sbatch: debug:
 * TEXT". */
void slurm_job_debug(const struct slurm_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A slurm_record_fn. */
void slurm_job_record(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value);

/* Adds or replaces a kept option. */
void slurm_job_note_set(struct slurm_job *job, const char *name, const char *value);

#define SLURM_LINE_MAX 480 // bytes of the command line that are kept

/* Stores the command line with the job, for SubmitLine of sacct; longer ones are cut. */
void slurm_job_note_line(struct slurm_job *job, const char *program, int argc, char **argv);

/* Converts the options to those of submit: nodes, CPUs, memory, GPUs, time, mail. */
int slurm_job_resolve_request(struct slurm_job *job, struct error *err);

/* The same for a job of a Slurm command, with its files, variables and stored options. */
int slurm_job_resolve(struct slurm_job *job, const struct slurm_program *program, struct error *err);

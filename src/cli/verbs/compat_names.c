/* SPDX-License-Identifier: MIT */
#include "cli/verbs/compat_names.h"

#include <stddef.h>
#include <string.h>

const struct compat_name compat_names[] = {
    { "mgpu_scheduler_server", "run mgpud in the foreground", NULL },
    { "mgpu_srun", "queue a command for exactly these GPUs", NULL },
    { "mgpu_queue", "list waiting and running jobs", NULL },
    { "mgpu_cancel", "end jobs, or remove them from the queue", NULL },
    { "tgpu", "queue jobs for GPUs, and see their results", NULL },
    { "srun", "wait for GPUs, then execute a command with them (not the srun of Slurm)", "Slurm" },
    { "run_server", "run mgpud, first come, first served", NULL },
    { "tui", "GPUs, jobs and the server on the whole screen (mgpu top)", NULL },
    { "scheduler", "submit the lines of a file as jobs that share GPUs", NULL },
    { "mgpu_simple_master", "run mgpud in the foreground, and report nodes that connect", NULL },
    { "mgpu_simple_node", "run a node of a master in the foreground", NULL },
    { "mgpu_simple_client", "queue jobs for the GPUs of several machines, and watch them", NULL },
    { 0 },
};

const struct compat_name slurm_names[] = {
    { "sbatch", "Slurm: submit a script", "Slurm" },
    { "srun", "Slurm: run tasks", "Slurm" },
    { "salloc", "Slurm: allocate, and run a shell or a command", "Slurm" },
    { "squeue", "Slurm: list waiting and running jobs", "Slurm" },
    { "scancel", "Slurm: end jobs", "Slurm" },
    { "sacct", "Slurm: list jobs, ended ones too", "Slurm" },
    { "sinfo", "Slurm: list nodes", "Slurm" },
    { "scontrol", "Slurm: show objects, and change jobs", "Slurm" },
    { "sacctmgr", "Slurm: show the one account", "Slurm" },
    { "sshare", "Slurm: show the shares of users", "Slurm" },
    { "sprio", "Slurm: show the order of waiting jobs", "Slurm" },
    { "sdiag", "Slurm: show how many jobs there are", "Slurm" },
    { "slurmrestd", "Slurm: answer its REST API for one user", "Slurm" },
    { "seff", "Slurm: show how much of its resources a job has used", "Slurm" },
    { "sreport", "Slurm: show the usage of users in a period", "Slurm" },
    { "sstat", "Slurm: show the memory of running jobs", "Slurm" },
    { "sattach", "Slurm: follow the output of a job", "Slurm" },
    { "sbcast", "Slurm: copy a file in a job", "Slurm" },
    { "strigger", "Slurm: refused, with what to use instead", "Slurm" },
    { "sview", "Slurm: refused, with what to use instead", "Slurm" },
    { "scrontab", "Slurm: refused, with what to use instead", "Slurm" },
    { 0 },
};

const struct compat_name *compat_name_find(const struct compat_name *names, const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    for (const struct compat_name *row = names; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

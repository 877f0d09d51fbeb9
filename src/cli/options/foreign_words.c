/* SPDX-License-Identifier: MIT */
/*
 * Slurm, pueue, task-spooler, docker and kubectl. A name that mgpu has itself, as a command, an alias or an
 * option of the same meaning, needs no row. A meaning is named before a name that is near by letters.
 */
#include "cli/options/foreign_words.h"

#include <stddef.h>
#include <string.h>

#define REAL " (the command itself: mgpu compat install --slurm DIR)"

const struct foreign_command foreign_commands[] = {
    /* Slurm */
    { "sbatch", "mgpu submit SCRIPT" REAL },
    { "salloc", "mgpu shell -g 1" REAL },
    { "sinfo", "mgpu nodes, mgpu gpus or mgpu partitions" REAL },
    { "scontrol", "mgpu show JOB, mgpu edit JOB, mgpu hold JOB or mgpu node drain NODE" REAL },
    { "sattach", "mgpu attach JOB" REAL },
    { "sstat", "mgpu show JOB" REAL },
    { "sprio", "mgpu why JOB" REAL },
    { "sshare", "mgpu users" REAL },
    { "sreport", "mgpu users, or mgpu history" REAL },
    { "sacctmgr", "mgpu users for what each may use; limits are settings of mgpud: man mgpud" },
    { "sdiag", "mgpu doctor" },
    { "seff", "mgpu show JOB" REAL },
    { "sview", "mgpu top" },
    { "smap", "mgpu top" },
    /* pueue */
    { "add", "mgpu submit -- COMMAND" },
    { "start", "mgpu release JOB for a job that is held, mgpu continue JOB for one that is suspended" },
    { "stash", "mgpu hold JOB" },
    { "unstash", "mgpu release JOB" },
    { "enqueue", "mgpu release JOB for a held job, mgpu submit -- COMMAND for a new one" },
    { "restart", "mgpu retry JOB for a job that has ended, mgpu requeue JOB for one that runs" },
    { "switch", "mgpu edit JOB priority=N" },
    { "clean", "ended jobs leave mgpu ps by themselves; mgpu history lists them" },
    { "clear", "ended jobs leave mgpu ps by themselves; mgpu history lists them" },
    { "reset", "mgpu cancel JOB..., with the numbers of mgpu ps" },
    { "group", "mgpu partitions" },
    { "parallel", "jobs run side by side where GPUs are free; limits: man mgpud, --user-max-jobs" },
    { "send", "mgpu attach JOB" },
    /* task-spooler */
    { "ts", "mgpu submit -- COMMAND, and mgpu ps" },
    { "tsp", "mgpu submit -- COMMAND, and mgpu ps" },
    /* docker and kubectl */
    { "stop", "mgpu cancel JOB; for a pause mgpu suspend JOB" },
    { "tail", "mgpu logs -f JOB" },
    { "cat", "mgpu logs JOB" },
    { "create", "mgpu submit -- COMMAND" },
    { "apply", "mgpu submit JOBS.yaml" },
    { "delete", "mgpu cancel JOB" },
    { "get", "mgpu ps, mgpu gpus or mgpu nodes" },
    { "stats", "mgpu top" },
    { "events", "mgpu show JOB, or curl -N http://127.0.0.1:9123/api/v1/events" },
    { "drain", "mgpu node drain NODE" },
    { "cordon", "mgpu node drain NODE" },
    { "uncordon", "mgpu node resume NODE" },
    { "update", "mgpu edit JOB" },
    { "commit", "mgpu submit takes your directory as it is: nothing is copied" },
    { "pull", "podman pull IMAGE; then mgpu run --image IMAGE -- COMMAND" },
    { "images", "podman images; in a job: mgpu run --image IMAGE -- COMMAND" },
    { "build", "podman build; in a job: mgpu run --image IMAGE -- COMMAND" },
    /* words without a program */
    { "jobs", "mgpu ps" },
    { "job", "mgpu show JOB" },
    { "info", "mgpu show JOB, or mgpu gpus" },
    { "inspect", "mgpu show JOB" },
    { "output", "mgpu logs JOB" },
    { "abort", "mgpu cancel JOB" },
    { "terminate", "mgpu cancel JOB" },
    { "end", "mgpu cancel JOB" },
    { "detach", "Ctrl-] d in mgpu run or mgpu attach; mgpu submit never attaches" },
    { "login", "mgpu shell -g 1, or mgpu exec JOB -- bash" },
    { "bash", "mgpu shell -g 1, or mgpu exec JOB -- bash" },
    { "python", "mgpu run -- python3 FILE" },
    { "python3", "mgpu run -- python3 FILE" },
    { "torchrun", "mgpu run -g 2 -- torchrun FILE" },
    { "nvidia-smi", "mgpu gpus, or mgpu exec JOB -- nvidia-smi" },
    { "limits", "mgpu users" },
    { "quota", "mgpu users" },
    { "setup", "mgpu doctor names what is missing" },
    { 0 },
};

const struct option_meaning foreign_options[] = {
    /* Slurm */
    { "job-name", "ram", "-J NAME (--name) names the job" },
    { "wrap", "ram", "the command follows the options: mgpu submit -- 'COMMAND'" },
    { "cpus-per-task", "ram", "-c N (--cpus) is the CPUs on each node" },
    { "cpus-per-gpu", "ram",
        "-c N (--cpus) is the CPUs on each node: the number for each GPU times the GPUs" },
    { "mem-per-cpu", "ram", "-M SIZE (--ram) is the host memory on each node" },
    { "mem-per-gpu", "ram",
        "-M SIZE (--ram) is the host memory on each node, -m SIZE the memory on each GPU" },
    { "dependency", "ram",
        "-A JOB (--after) for afterok, -A JOB:any for afterany, -A JOB:fail for afternotok" },
    { "d", "ram", "-A JOB (--after) starts after a job; mgpu submit never attaches" },
    { "ntasks", "ram",
        "a job is one command on each node: -N for nodes, -g for GPUs; srun in it starts tasks" },
    { "ntasks-per-node", "ram",
        "a job is one command on each node; torchrun, mpirun or srun in it start its tasks" },
    { "tasks-per-node", "ram",
        "a job is one command on each node; torchrun, mpirun or srun in it start its tasks" },
    { "gres", "ram", "-g N (--gpus), or with a model -g N:TYPE" },
    { "gpus-per-task", "ram", "-g N (--gpus) is all GPUs of the job, --gpus-per-node those of each node" },
    { "w", "ram", "--nodelist NODE names the nodes" },
    { "x", "ram", "--exclude NODE leaves nodes out" },
    { "i", "ram", "--input FILE is the standard input; for a terminal: mgpu run or mgpu shell" },
    { "D", "ram", "-C DIR (--chdir) is the working directory" },
    { "workdir", "ram", "-C DIR (--chdir) is the working directory" },
    { "account", "ram", "accounts are the users and groups of the system: mgpu users; leave it out" },
    { "qos", "ram", "-p N (--priority) is the priority, --preemptible gives way to others; leave it out" },
    { "nice", "ram", "-p -N (--priority) lowers the priority" },
    { "constraint", "ram", "-g N:TYPE chooses the model, -P NAME the partition, --nodelist the nodes" },
    { "mail-type", "ram", "--notify mail --notify-on end,fail" },
    { "mail-user", "ram", "--notify mail:ADDRESS" },
    { "requeue", "ram", "--requeue-on node-lost, --on-timeout requeue or --retry N" },
    { "no-requeue", "ram", "nothing is requeued unless asked; leave it out" },
    { "parsable", "ram", "mgpu submit prints the number alone on standard output; leave it out" },
    { "test-only", "ram", "--dry-run shows where and when it would start" },
    { "reservation", "ram", "the reservations of their users are used without an option: mgpu reserve list" },
    { "licenses", "ram", "GPUs, CPUs and memory are all that is counted; leave it out" },
    { "pty", "ram", "-T (--tty) runs it on a terminal" },
    { "open-mode", "ram", "output files are appended to; --truncate empties them first" },
    { "immediate", "ram", "--deadline now+1m gives up if not started by then" },
    { "format", "no-header", "-o COLUMNS chooses the columns: -o help" },
    { "starttime", "since", "--since TIME" },
    { "endtime", "until", "--until TIME" },
    /* pueue and task-spooler */
    { "label", "ram", "-J NAME (--name) names the job" },
    { "L", "ram", "-J NAME (--name) names the job" },
    { "delay", "ram", "-b +TIME (--begin) is the earliest start" },
    { "stashed", "ram", "--hold keeps it until mgpu release JOB" },
    { "working-directory", "ram", "-C DIR (--chdir) is the working directory" },
    { "group", "ram", "-P NAME (--partition)" },
    { "print-task-id", "ram", "mgpu submit prints the number; leave it out" },
    { "follow", "ram", "mgpu run follows its output; for a job of the queue: mgpu logs -f JOB" },
    { "f", "ram", "mgpu run stays in the foreground; for a job of the queue: mgpu logs -f JOB" },
    /* docker and kubectl */
    { "rm", "ram", "nothing of a job has to be removed; leave it out" },
    { "volume", "image-mount", "--image-mount SRC[:DST[:ro]]" },
    { "v", "image-mount", "--image-mount SRC[:DST[:ro]]" },
    { "mount", "image-mount", "--image-mount SRC[:DST[:ro]]" },
    { "memory", "ram", "-M SIZE (--ram) is the host memory on each node" },
    { "shm-size", "ram", "a job has the machine's /dev/shm; leave it out" },
    { "detach", "ram", "mgpu submit does not attach; in mgpu run: Ctrl-] d" },
    { "interactive", "ram", "-T (--tty) runs it on a terminal; mgpu shell opens one" },
    { "workers", "ram", "-N N (--nodes)" },
    { "restart", "ram", "--retry N, or --requeue-on node-lost" },
    { "namespace", "ram", "-P NAME (--partition)" },
    { "command", "ram", "the command follows the options: mgpu submit -- COMMAND" },
    { "timeout", "ram", "-t TIME (--time) is the time limit" },
    { "walltime", "ram", "-t TIME (--time) is the time limit" },
    { "tail", "raw", "-n N (--lines) prints the last lines" },
    { 0 },
};

const char *foreign_command_here(const char *name)
{
    for (const struct foreign_command *row = foreign_commands; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row->here;
    return NULL;
}

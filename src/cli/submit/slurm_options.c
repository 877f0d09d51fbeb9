/* SPDX-License-Identifier: MIT */
/*
 * Every option of sbatch, srun and salloc of Slurm 22.05, and its effect here. docs/slurm.md is generated
 * from this table.
 */
#include <stddef.h>

#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_set.h"

#define S   SLURM_SBATCH
#define R   SLURM_SRUN
#define A   SLURM_SALLOC
#define ANY SLURM_SUBMITS
#define DONE(name, letter, argument, programs, set, variable, help)                                          \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_DONE, set, variable, help, NULL                              \
    }
#define RECORDED(name, letter, argument, programs, variable, help)                                           \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_RECORDED, NULL, variable, help, name                         \
    }
#define ACCEPTED(name, letter, argument, programs, variable, help)                                           \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_ACCEPTED, NULL, variable, help, NULL                         \
    }
#define REFUSED(name, letter, argument, programs, why)                                                       \
    {                                                                                                        \
        name, letter, argument, programs, SLURM_REFUSED, NULL, NULL, why, NULL                               \
    }

const struct slurm_option slurm_submit_options[] = {
    RECORDED("account", 'A', "name", ANY, "ACCOUNT", "account to charge"),
    DONE("array", 'a', "indexes", S, slurm_set_array, "ARRAY_INX", "array of jobs: 0-9, 1-10:2%3"),
    DONE("begin", 'b', "time", ANY, slurm_set_moment, "BEGIN",
        "earliest start: now+1hour, 16:00, 2026-12-24T12:00"),
    DONE("chdir", 'D', "directory", ANY, slurm_set_text, "CHDIR", "directory to run in"),
    DONE("container-image", 0, "image", S | R, slurm_set_image, NULL, "container to run in (pyxis)"),
    DONE("container-mounts", 0, "list", S | R, slurm_set_mounts, NULL,
        "SRC:DST[:ro] in the container (pyxis)"),
    DONE("cpus-per-gpu", 0, "n", ANY, slurm_set_number, "CPUS_PER_GPU", "CPUs for each GPU"),
    DONE("cpus-per-task", 'c', "n", ANY, slurm_set_number, "CPUS_PER_TASK", "CPUs for each task"),
    DONE("deadline", 0, "time", ANY, slurm_set_moment, NULL, "give up if not started by then"),
    DONE("dependency", 'd', "list", ANY, slurm_set_dependency, "DEPENDENCY",
        "start after other jobs: afterok:12:13"),
    DONE("error", 'e', "file", S | R, slurm_set_text, "ERROR", "file for standard error"),
    DONE("export", 0, "list", ANY, slurm_set_export, "EXPORT",
        "variables of the job: ALL, NONE, names, NAME=value"),
    DONE("exact", 0, NULL, R, slurm_set_flag, "EXACT",
        "only the CPUs that the step requests, so that others run beside it"),
    DONE("gpus", 'G', "[type:]n", ANY, slurm_set_gpus, "GPUS", "GPUs of the whole job"),
    DONE("gpus-per-node", 0, "[type:]n", ANY, slurm_set_gpus, "GPUS_PER_NODE", "GPUs on each node"),
    DONE("gpus-per-task", 0, "[type:]n", ANY, slurm_set_gpus, "GPUS_PER_TASK", "GPUs for each task"),
    DONE("gres", 0, "gpu[:type]:n", ANY, slurm_set_gpus, "GRES", "GPUs on each node"),
    DONE("hold", 'H', NULL, ANY, slurm_set_flag, "HOLD", "do not start before scontrol release"),
    DONE("immediate", 'I', "[seconds]", R | A, slurm_set_immediate, "IMMEDIATE",
        "give up if the resources are not there within this time (1)"),
    DONE("input", 'i', "file", S | R, slurm_set_text, "INPUT", "file for standard input"),
    DONE("job-name", 'J', "name", ANY, slurm_set_text, "JOB_NAME", "name of the job"),
    DONE(
        "kill-on-bad-exit", 'K', "[0|1]", R, slurm_set_kill, "KILL_BAD_EXIT", "end all tasks when one fails"),
    DONE("label", 'l', NULL, R, slurm_set_flag, "LABELIO",
        "begin each line of output with the number of its task"),
    DONE("mail-type", 0, "list", ANY, slurm_set_mail_type, NULL,
        "send mail: BEGIN, END, FAIL, REQUEUE, ALL, NONE"),
    DONE("mail-user", 0, "user", ANY, slurm_set_text, NULL, "who gets the mail (you)"),
    DONE("mem", 0, "size", ANY, slurm_set_memory, "MEM_PER_NODE", "host memory of each node; plain = MiB"),
    DONE("mem-per-cpu", 0, "size", ANY, slurm_set_memory, "MEM_PER_CPU", "host memory for each CPU"),
    DONE("mem-per-gpu", 0, "size", ANY, slurm_set_memory, "MEM_PER_GPU", "host memory for each GPU"),
    DONE("nice", 0, "[n]", ANY, slurm_set_nice, NULL, "lower the priority by this much (100)"),
    DONE("no-requeue", 0, NULL, S, slurm_set_requeue, "NO_REQUEUE", "never put it back into the queue"),
    DONE("no-shell", 0, NULL, A, slurm_set_flag, NULL, "allocate, and run nothing"),
    DONE("nodes", 'N', "n[-m]", ANY, slurm_set_nodes, "NNODES", "number of nodes"),
    DONE("ntasks", 'n', "n", ANY, slurm_set_number, "NTASKS", "number of tasks"),
    DONE("ntasks-per-gpu", 0, "n", ANY, slurm_set_number, "NTASKS_PER_GPU", "tasks for each GPU"),
    DONE("ntasks-per-node", 0, "n", ANY, slurm_set_number, "NTASKS_PER_NODE", "tasks on each node"),
    DONE("tasks-per-node", 0, "n", ANY, slurm_set_number, NULL, "the same as --ntasks-per-node"),
    DONE("open-mode", 0, "append|truncate", S | R, slurm_set_open_mode, "OPEN_MODE",
        "append to an existing output file, or truncate it"),
    DONE("output", 'o', "file", S | R, slurm_set_text, "OUTPUT", "file for standard output (slurm-%j.out)"),
    DONE(
        "overlap", 0, NULL, R, slurm_set_flag, "OVERLAP", "share the nodes of the step with all other steps"),
    DONE("parsable", 0, NULL, S, slurm_set_flag, NULL, "print the number of the job alone"),
    DONE("partition", 'p', "name", ANY, slurm_set_partition, "PARTITION", "partition"),
    DONE("quiet", 'Q', NULL, ANY, slurm_set_flag, NULL, "print errors only"),
    DONE("requeue", 0, NULL, S, slurm_set_requeue, "REQUEUE",
        "put it back into the queue when its node is lost"),
    DONE("signal", 0, "[B:]signal[@s]", ANY, slurm_set_signal, "SIGNAL", "signal before the time limit"),
    DONE("test-only", 0, NULL, S | R, slurm_set_flag, NULL, "say when it would start, and submit nothing"),
    DONE("time", 't', "time", ANY, slurm_set_time, "TIMELIMIT", "time limit: 30, 2:00:00, 1-12"),
    DONE("wait", 'W', NULL, S, slurm_set_flag, "WAIT",
        "stay until the job has ended, and exit with its status"),
    DONE("wrap", 0, "command", S, slurm_set_text, NULL, "run this command line instead of a script"),

    DONE("clusters", 'M', "list", ANY, slurm_set_job_clusters, "CLUSTERS", "cluster: mgpu or all"),
    RECORDED("comment", 0, "text", ANY, "COMMENT", "any text"),
    DONE("licenses", 'L', "list", ANY, slurm_set_licenses, NULL,
        "licenses; mgpu counts none, so that only name:0 is accepted"),
    RECORDED("qos", 'q', "name", ANY, "QOS", "quality of service"),
    RECORDED("wckey", 0, "key", ANY, "WCKEY", "key of accounting"),

    ACCEPTED("acctg-freq", 0, "list", ANY, "ACCTG_FREQ", "how often usage is sampled"),
    ACCEPTED("cluster-constraint", 0, "list", ANY, NULL, "features of a cluster"),
    ACCEPTED("contiguous", 0, NULL, ANY, NULL, "nodes side by side"),
    ACCEPTED("core-spec", 'S', "n", ANY, "CORE_SPEC", "cores for the system"),
    ACCEPTED("cores-per-socket", 0, "n", ANY, NULL, "cores of a socket"),
    ACCEPTED("cpu-bind", 0, "kind", R, "CPU_BIND", "which CPUs a task is bound to"),
    ACCEPTED("cpu_bind", 0, "kind", R, NULL, "the same as --cpu-bind"),
    ACCEPTED("cpu-freq", 0, "range", ANY, "CPU_FREQ_REQ", "frequency of the CPUs"),
    ACCEPTED("delay-boot", 0, "minutes", ANY, "DELAY_BOOT", "when nodes are booted"),
    DONE(
        "disable-status", 'X', NULL, R, slurm_set_flag, "DISABLE_STATUS", "end the step at the first Ctrl-C"),
    DONE("distribution", 'm', "kind", ANY, slurm_set_text, "DISTRIBUTION",
        "how tasks are distributed to nodes: block, the only one here"),
    DONE("epilog", 0, "program", R, slurm_set_text, "EPILOG", "program that srun runs after the step"),
    DONE("export-file", 0, "file", S, slurm_set_export_file, "EXPORT_FILE",
        "variables of the job: NAME=value, each ended by a NUL byte"),
    ACCEPTED("extra-node-info", 'B', "s[:c[:t]]", ANY, NULL, "sockets, cores and threads"),
    ACCEPTED("get-user-env", 0, "[time]", S | A, "GET_USER_ENV", "environment of a login"),
    DONE("gpu-bind", 0, "kind", ANY, slurm_set_text, "GPU_BIND",
        "GPUs that a task sees: none, single:N, per_task:N, map_gpu:LIST, mask_gpu:LIST, closest"),
    ACCEPTED("gpu-freq", 0, "range", ANY, "GPU_FREQ", "frequency of the GPUs"),
    DONE("gpus-per-socket", 0, "[type:]n", ANY, slurm_set_gpus, "GPUS_PER_SOCKET",
        "GPUs on each socket, of which there are --sockets-per-node"),
    ACCEPTED("gres-flags", 0, "kind", ANY, "GRES_FLAGS", "how GPUs and CPUs belong together"),
    ACCEPTED("hint", 0, "kind", ANY, "HINT", "how CPUs are used"),
    ACCEPTED("ignore-pbs", 0, NULL, S, "IGNORE_PBS", "no #PBS lines"),
    ACCEPTED("interactive", 0, NULL, R, NULL, "the shell of salloc"),
    DONE("kill-command", 'K', "[signal]", A, slurm_set_kill_command, "KILL_CMD",
        "signal for the command when the job ends first (HUP for a shell, TERM)"),
    ACCEPTED("mem-bind", 0, "kind", ANY, "MEM_BIND", "which memory a task is bound to"),
    DONE("mincpus", 0, "n", ANY, slurm_set_number, NULL, "CPUs of each node at least"),
    DONE("mpi", 0, "kind", R, slurm_set_text, "MPI_TYPE",
        "kind of MPI: none, pmi2 (MPICH), pmix (Open MPI), list"),
    ACCEPTED("no-bell", 0, NULL, A, "NO_BELL", "no bell"),
    ACCEPTED("bell", 0, NULL, A, "BELL", "a bell"),
    ACCEPTED("no-kill", 'k', "[off]", ANY, "NO_KILL", "go on when a node fails"),
    ACCEPTED("ntasks-per-core", 0, "n", ANY, NULL, "tasks of a core"),
    ACCEPTED("ntasks-per-socket", 0, "n", ANY, NULL, "tasks of a socket"),
    ACCEPTED("overcommit", 'O', NULL, ANY, "OVERCOMMIT", "several tasks for each CPU"),
    ACCEPTED("oversubscribe", 's', NULL, ANY, "OVERSUBSCRIBE", "nodes with other jobs"),
    ACCEPTED("power", 0, "flags", ANY, "POWER", "power"),
    ACCEPTED("priority", 0, "value", ANY, NULL, "priority, which nice sets"),
    ACCEPTED("profile", 0, "kind", ANY, "PROFILE", "what is sampled"),
    DONE("prolog", 0, "program", R, slurm_set_text, "PROLOG", "program that srun runs before the step"),
    ACCEPTED("propagate", 0, "[limits]", S | R, "PROPAGATE", "limits of this shell"),
    ACCEPTED("reboot", 0, NULL, ANY, "REBOOT", "boot the nodes first"),
    ACCEPTED("slurmd-debug", 0, "level", R, "SLURMD_DEBUG", "log level of slurmd"),
    DONE("sockets-per-node", 0, "n", ANY, slurm_set_number, NULL, "sockets of a node, for --gpus-per-socket"),
    ACCEPTED("spread-job", 0, NULL, ANY, "SPREAD_JOB", "over many nodes"),
    ACCEPTED("switches", 0, "n[@time]", ANY, "REQ_SWITCH", "switches between nodes"),
    REFUSED("task-epilog", 0, "program", R, "call it in the command of the task"),
    REFUSED("task-prolog", 0, "program", R, "call it in the command of the task"),
    ACCEPTED("thread-spec", 0, "n", ANY, "THREAD_SPEC", "threads for the system"),
    ACCEPTED("threads", 'T', "n", R, "THREADS", "threads of srun"),
    ACCEPTED("threads-per-core", 0, "n", ANY, "THREADS_PER_CORE", "threads of a core"),
    ACCEPTED(
        "time-min", 0, "time", ANY, NULL, "shortest time limit that will do: the job gets all of --time"),
    ACCEPTED("tmp", 0, "size", ANY, NULL, "disk for temporary files"),
    ACCEPTED("unbuffered", 'u', NULL, R, "UNBUFFEREDIO", "output at once, as it always comes"),
    ACCEPTED("use-min-nodes", 0, NULL, ANY, "USE_MIN_NODES", "as few nodes as possible"),
    DONE("verbose", 'v', NULL, ANY, slurm_set_flag, NULL, "print the options of the command line"),
    ACCEPTED("wait-all-nodes", 0, "0|1", S | A, "WAIT_ALL_NODES", "start when all nodes are ready"),
    DONE("wait", 'W', "seconds", R, slurm_set_number, "WAIT",
        "end the other tasks this long after the first has ended"),
    ACCEPTED("whole", 0, NULL, R, "WHOLE", "all of the nodes, which a step without --exact gets"),
    ACCEPTED("x11", 0, "[kind]", R | A, "X11", "X11 through the job"),

    ACCEPTED("accel-bind", 0, "list", R, NULL, "how GPUs are bound to tasks, which --gpu-bind sets"),
    ACCEPTED("bcast-exclude", 0, "list", R, "BCAST_EXCLUDE", "libraries that --bcast leaves out"),
    ACCEPTED("compress", 0, "[kind]", R, "COMPRESS", "compress what --bcast copies"),
    DONE("kill-on-invalid-dep", 0, "yes|no", S, slurm_set_invalid_dependency, NULL,
        "end the job if its dependency can never be satisfied"),
    ACCEPTED("mcs-label", 0, "label", ANY, NULL, "security label"),
    ACCEPTED("msg-timeout", 0, "seconds", R, "MSG_TIMEOUT", "how long srun waits for its nodes"),
    REFUSED("no-allocate", 'Z', NULL, R, "tasks run in a job"),
    ACCEPTED("prefer", 0, "list", ANY, NULL, "features that nodes had better have"),
    DONE("preserve-env", 'E', NULL, R, slurm_set_flag, NULL,
        "keep SLURM_NNODES and SLURM_NTASKS as they are for the job"),
    DONE("quit-on-interrupt", 0, NULL, R, slurm_set_flag, NULL, "end the step at the first Ctrl-C"),
    REFUSED("resv-ports", 0, "[n]", R, "no ports are reserved for steps"),
    ACCEPTED("send-libs", 0, "[yes|no]", R, "SEND_LIBS", "copy libraries with --bcast"),

    REFUSED("batch", 0, "list", S, "nodes have no features"),
    REFUSED("bb", 0, "spec", ANY, "there is no burst buffer"),
    REFUSED("bbf", 0, "file", ANY, "there is no burst buffer"),
    REFUSED("bcast", 0, "[file]", R, "programs are run where they are"),
    DONE("constraint", 'C', "list", ANY, slurm_set_constraint, "CONSTRAINT",
        "features of nodes, which are the models of their GPUs: a100, or a100|h100"),
    REFUSED("container", 0, "path", ANY, "containers are --container-image=IMAGE"),
    REFUSED("context", 0, "context", ANY, "jobs have the SELinux context of their node's rules"),
    REFUSED("gid", 0, "group", ANY, "a job has the groups of its user"),
    REFUSED("het-group", 0, "list", R, "there are no heterogeneous jobs"),
    REFUSED("pack-group", 0, "list", R, "there are no heterogeneous jobs"),
    DONE(
        "multi-prog", 0, NULL, R, slurm_set_flag, NULL, "the command is a file with a program for each task"),
    REFUSED("network", 0, "kind", ANY, "there is no such network"),
    DONE("nodefile", 'F', "file", ANY, slurm_set_nodefile, NULL, "file with the list of --nodelist"),
    DONE("nodelist", 'w', "nodes", ANY, slurm_set_text, NULL,
        "nodes of the job, all of them, or those of it that a step runs on"),
    DONE("exclude", 'x', "nodes", ANY, slurm_set_text, NULL,
        "nodes that the job, or the step, does not run on"),
    DONE("exclusive", 0, "[user|mcs]", ANY, slurm_set_exclusive, "EXCLUSIVE",
        "no other job on the nodes of the job; of a step: --exact"),
    DONE("relative", 'r', "n", R, slurm_set_number, NULL, "first node of the job that the step runs on"),
    DONE("pty", 0, NULL, R, slurm_set_flag, NULL, "run on a terminal"),
    DONE("jobid", 0, "id", R, slurm_set_number, "JOBID", "job that the step belongs to"),
    REFUSED("reservation", 0, "names", ANY,
        "reservations of mgpu are for users, and have no names (mgpu reserve)"),
    REFUSED("uid", 0, "user", ANY, "a job runs as the user who submits it"),
    { 0 },
};

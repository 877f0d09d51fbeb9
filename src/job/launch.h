/* SPDX-License-Identifier: MIT */
/* What the agent tells a shepherd, and what a shepherd leaves behind: the records of an attempt's spool
 * directory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"
#include "base/spool_id.h"
#include "base/strings.h"
#include "job/ask.h"
#include "job/usage.h"

#define MEETING_PORT_FIRST 29500U // where the ranks of a job on several nodes may meet
#define MEETING_PORTS      500U

#define LAUNCH_START_MS (120 * 1000) // a user must not hold GPUs with a start that never comes

#define LAUNCH_GROUPS_MAX 65536U // as many as Linux allows (NGROUPS_MAX)

/* Whom the signal before the time limit is for. */
enum warn_scope {
    WARN_ALL,     // every process
    WARN_OTHERS,  // all but the command itself: of a batch script its steps
    WARN_COMMAND, // the command itself
};

struct group_id {
    uint32_t gid;
};

/* Who may open which character devices: the first rule that fits decides, what fits none is allowed. */
struct device_rule {
    uint32_t major, minor_first, minor_last;
    uint32_t is_allowed;
};

#define LAUNCH_DEVICES_MAX 1024U // rules of one step
#define LAUNCH_MINOR_MAX   0xfffffU

/* How a step runs in a container. */
struct launch_image {
    char *name;
    char *runtime;                // or NULL: what the node has
    struct strings mounts;        // SRC[:DST[:ro]]
    struct strings devices;       // paths of the nodes of its GPUs, and of those they need
    struct strings gpus;          // "INDEX UUID" of its GPUs
    char *visible;                // CUDA_VISIBLE_DEVICES where no other GPUs can be seen, or NULL
    uint32_t has_nvidia, has_amd; // among its GPUs
};

/* spool file "spec": everything the shepherd needs; it looks nothing up. */
struct launch_spec {
    struct spool_id id;
    uint64_t token;
    uint32_t uid, gid;
    struct record_list
        groups; // struct group_id: the whole supplementary list, from the node's own user database
    uint32_t umask;
    struct strings command;
    struct strings env;     // environment the command starts from
    struct strings gpu_env; // set over it after the setup command ran
    char *cwd;
    char *cwd_fallback;         // absolute: it runs there when it cannot enter cwd; NULL: it fails
    uint32_t meeting_port;      // of rank 0: its ranks meet at this port, or the next free one; 0: none
    char *setup;                // or NULL
    char *shell;                // runs the setup
    char *output;               // absolute, or relative to cwd
    bool is_output_default;     // the directory of `output` is made when missing, mode 0700
    char *error, *input;        // files of stderr alone and of stdin; NULL: those of stdout, and /dev/null
    bool is_truncated;          // files of output that the user named are emptied first
    char *output_fallback;      // tried when the default place cannot be opened, or NULL
    char *job_cgroup;           // directory of the step's cgroup; NULL when there are none
    struct strings v1_cgroups;  // directories of the v1 cgroups that the step enters as well
    char *memory_cgroup;        // directory where the kernel counts its memory, or NULL
    uint64_t memory_limit;      // bytes; 0: none
    uint32_t cpu_milli;         // 0: no limit
    uint32_t pids_max;          // processes and threads; 0: no limit
    uint32_t numa;              // 1 + NUMA node of its first GPU; 0: not known
    struct record_list devices; // struct device_rule; empty: every device
    uint64_t nofile_soft, nofile_hard; // RLIMIT_NOFILE; 0: as the shepherd found it
    int64_t time_limit_ms;             // from the start of the command; 0: none
    int64_t grace_ms;                  // between SIGTERM and SIGKILL at the limit
    uint32_t warn_signal;              // sent before the limit; 0: none
    int64_t warn_before_ms;            // so long before
    uint32_t warn_scope;               // enum warn_scope
    uint32_t checkpoint_signal;        // asks it to save its work and to say so; 0: it has not promised that
    bool is_requeued_at_limit;         // its time limit is such a stop
    char *say_pipe;                    // the pipe into which it says things, or NULL
    char *exit_copy_dir;     // where an exit record that nobody fetched within a second is written durably
    struct record_list gpus; // struct gpu_grant: what the attempt was given
    int64_t lease_ms;       // it ends when the node has heard nothing of the controller for so long; 0: never
    int64_t lease_until_ms; // boot clock: until then at first; later the spool file "renewed" says it
    bool is_tty;            // it has a terminal
    uint32_t tty_rows, tty_columns; // 0: as usual
    /* `mgpu exec`: runs beside step 0 in its cgroup, is ended with it, and its output goes to whoever started
     * it. */
    bool is_exec_step;
    struct record_list ask;   // struct job_ask: launch_ask()
    struct record_list image; // at most one struct launch_image: the command runs in a container
    char *script;             // the file that the command runs, with the text that was submitted; NULL: none
    /* A rank of several: when all is prepared it says so (spool file "ready") and waits to be let go. */
    bool is_gated;
    int64_t start_ms; // from its shepherd's start until it is prepared; 0: any time
};

/* spool file "started": the gate is open. */
struct launch_started {
    struct spool_id id;
    uint64_t token;
    uint32_t shepherd_pid;
    uint64_t shepherd_start;
    uint32_t init_pid; // the user's init: parent of the command
    uint64_t init_start;
    char *log_path;
    int64_t wall_ms;
    int64_t boot_ms; // the same on the boot clock, which is never set; 0: written by an older version
    uint32_t port;   // of rank 0: where the ranks meet; 0: as they were told with the launch
    char *text;      // what is worth knowing about the start, in words, or NULL
};

/* spool file "exit": the attempt's step is over and nothing of it is left running. */
struct launch_exit {
    struct spool_id id;
    uint64_t token;
    uint32_t end; // enum job_end
    int32_t exit_code;
    uint32_t signal;
    uint32_t is_executed; // 1 when the command was executed, else it failed before
    int64_t started_wall_ms, ended_wall_ms, run_ms;
    uint64_t cpu_ms, max_rss, log_bytes;
    char *log_path;
    char *text;               // a failure in words: the step of the launch and the errno
    char *tail;               // the last lines of its output when it failed, at most USAGE_TAIL_MAX bytes
    struct record_list usage; // at most one struct job_usage; put in by the agent
};

/* What the job asks for, where the node decides nothing about it: an option of which the shepherd alone must
 * know has no field above. All zero in an entry of an older agent. */
const struct job_ask *launch_ask(const struct launch_spec *spec);

extern const struct record_type group_id_record;
extern const struct record_type device_rule_record;
extern const struct record_type launch_image_record;
extern const struct record_type launch_spec_record;
extern const struct record_type launch_started_record;
extern const struct record_type launch_exit_record;

/* The field tables, for the messages that carry these structs under their own ids. */
#define LAUNCH_STARTED_FIELDS 14
#define LAUNCH_EXIT_FIELDS    19
extern const struct record_field launch_started_fields[LAUNCH_STARTED_FIELDS];
extern const struct record_field launch_exit_fields[LAUNCH_EXIT_FIELDS];

/* When it started, on the boot clock. Without boot_ms it is estimated from both clocks now. */
int64_t launch_started_boot_ms(const struct launch_started *started, int64_t boot_ms, int64_t wall_ms);

/* Writes the port where the ranks meet over what variables of an environment say of it; those that are not
 * there stay away. */
void launch_tell_port(struct strings *variables, uint32_t port);

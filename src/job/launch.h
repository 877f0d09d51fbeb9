/* SPDX-License-Identifier: MIT */
/* The records of an attempt's spool directory: written by the agent for the shepherd, and by the shepherd. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"
#include "base/spool_id.h"
#include "base/strings.h"
#include "job/ask.h"
#include "job/usage.h"

#define MEETING_PORT_FIRST 29500U // rendezvous port of a job on several nodes
#define MEETING_PORTS      500U

#define LAUNCH_START_MS (120 * 1000) // a start must not hold GPUs for longer

#define LAUNCH_GROUPS_MAX 65536U // as many as Linux allows (NGROUPS_MAX)

/* A variable of jobs submitted by Slurm's commands, set by the process that becomes the command: until then
 * its value is SLURM_TASK_PID_ROOM. */
#define SLURM_TASK_PID      "SLURM_TASK_PID"
#define SLURM_TASK_PID_ROOM "0000000000"

/*
 * The recipients of a signal that is not meant to end the job: the one before the time limit, and those sent
 * by users. The processes that handle it receive it; if none does, and a user sent it, all processes, as with
 * kill(1). A user's HUP, INT, QUIT and TERM also reach a process that neither handles the signal nor is a
 * parent of, or reads from, one that does.
 */
enum signal_scope {
    SIGNAL_HANDLERS, // as above
    SIGNAL_OTHERS,   // all but the command itself: the steps of a batch script
    SIGNAL_COMMAND,  // the command itself
    SIGNAL_ALL,      // every process
    SIGNAL_SCOPES,
};

struct group_id {
    uint32_t gid;
};

/* A limit of the kernel for each process. */
struct launch_limit {
    uint32_t resource; // RLIMIT_..., as the node numbers them
    uint64_t soft, hard;
};
#define LAUNCH_LIMITS_MAX 16U

/* Access to character devices: the first matching rule applies; without a match, access is allowed. */
struct device_rule {
    uint32_t major, minor_first, minor_last;
    uint32_t is_allowed;
};

#define LAUNCH_DEVICES_MAX 1024U // rules of one step
#define LAUNCH_MINOR_MAX   0xfffffU

/* "handlers", "steps", "script", "all". */
const char *signal_scope_name(uint32_t scope);
/* False if `name` is none of them. */
bool signal_scope_find(const char *name, uint32_t *ret);

/* How a step runs in a container. */
struct launch_image {
    char *name;
    char *runtime;          // or NULL: the one installed on the node
    struct strings mounts;  // SRC[:DST[:ro]]
    struct strings devices; // paths of its GPU devices and the control devices they need
    struct strings gpus;    // "INDEX UUID" of its GPUs
    char *visible;          // the vendor's list of GPUs if others are hidden, or NULL
    uint32_t vendor;        // number of the row of its GPUs (base/gpu_vendor.h); 0: none
};

/* spool file "spec": everything the shepherd needs; it performs no lookups. */
struct launch_spec {
    struct spool_id id;
    uint64_t token;
    uint32_t uid, gid;
    struct record_list groups; // struct group_id: all supplementary groups, from the node's own user database
    uint32_t umask;
    struct strings command;
    struct strings env;     // environment before the setup command
    struct strings gpu_env; // applied after the setup command
    char *cwd;
    char *cwd_fallback;                // absolute: used if cwd cannot be entered; NULL: the start fails
    uint32_t meeting_port;             // of rank 0: rendezvous at this port or the next free one; 0: none
    char *setup;                       // or NULL
    char *shell;                       // runs the setup
    char *output;                      // absolute, or relative to cwd
    bool is_output_default;            // the directory of `output` is created if missing, mode 0700
    char *error, *input;               // files for stderr and stdin; NULL: that of stdout, and /dev/null
    bool is_input_sent;                // instead of a file: standard input is sent by a client
    bool is_truncated;                 // output files named by the user are truncated first
    char *output_fallback;             // used if the default output file cannot be opened, or NULL
    char *job_cgroup;                  // directory of the step's cgroup; NULL without cgroups
    struct strings v1_cgroups;         // directories of the v1 cgroups that the step enters as well
    char *memory_cgroup;               // cgroup directory with the memory counters, or NULL
    uint64_t memory_limit;             // bytes; 0: no limit
    uint32_t cpu_milli;                // 0: no limit
    uint32_t pids_max;                 // processes and threads; 0: no limit
    bool has_no_new_privs;             // it cannot gain rights by executing a program (sudo, ping)
    uint64_t numas;                    // bit k: one of its GPUs is on NUMA node k; 0: not known
    struct record_list devices;        // struct device_rule; empty: all devices are allowed
    uint64_t nofile_soft, nofile_hard; // RLIMIT_NOFILE; 0: inherited from the shepherd
    struct record_list limits;         // struct launch_limit: others of the kernel
    int64_t time_limit_ms;             // from the start of the command; 0: none
    int64_t grace_ms;                  // between SIGTERM and SIGKILL at the limit
    uint32_t warn_signal;              // sent before the limit; 0: none
    int64_t warn_before_ms;            // time before the limit
    uint32_t warn_scope;               // enum signal_scope
    uint32_t checkpoint_signal; // asks the job to save its work and report CHECKPOINTED; 0: not supported by
                                // the job
    bool is_requeued_at_limit;  // the time limit also requests a checkpoint
    char *say_pipe;             // the pipe for status reports, or NULL
    char *exit_copy_dir;        // where an exit record not fetched within a second is written durably
    struct record_list gpus;    // struct gpu_grant: the allocation of the attempt
    int64_t lease_ms; // ends after the node has had no contact with the controller for this time; 0: never
    int64_t lease_until_ms; // boot clock: initial end of the lease; the spool file "renewed" extends it
    bool is_tty;            // runs on a terminal
    uint32_t tty_rows, tty_columns; // 0: default size
    /* `mgpu exec`: runs beside step 0 in its cgroup and ends with it; its output goes to the caller. */
    bool is_exec_step;
    uint64_t exec_key;        // with which the caller returns after a lost connection; 0: it ends with that
    struct record_list ask;   // struct job_ask: launch_ask()
    struct record_list image; // at most one struct launch_image: the command runs in a container
    char *script;             // the script file that the command runs; NULL: none
    /* One of several ranks: reports when it is prepared (spool file "ready") and waits for GO. */
    bool is_gated;
    char *share;         // the kind that enforces its share of a GPU; NULL: none
    char *share_why;     // why this one, and no stronger one
    char *notices;       // the file with notices to the job, or NULL
    char *mps;           // name of its MPS daemon, or NULL
    struct strings dmem; // limits of device memory, as written to dmem.max: "REGION BYTES"
    int64_t files_ms;    // how long the shepherd waits for its directory and files (shepherd/files.c)
    int64_t start_ms;    // time from the shepherd's start until it must be prepared; 0: no limit
    /* Prepared while another job still runs: waits for GO before it accesses anything of the user (spool file
     * "ready"). It is not decided yet whether it runs. */
    bool is_prepared;
    /* Starts before it has its GPUs: `devices` denies those as well, and a process that opens one waits
     * (base/node/open_gate.h) until the pipe "grant" contains a byte. */
    bool is_early;
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
    int64_t boot_ms; // the same on the boot clock; 0: written by an older version
    uint32_t port;   // of rank 0: the rendezvous port; 0: as in the launch
    char *text;      // a remark about the start, or NULL
};

/* spool file "exit": the step has ended and no process of it is left. */
struct launch_exit {
    struct spool_id id;
    uint64_t token;
    uint32_t end; // enum job_end
    int32_t exit_code;
    uint32_t signal;
    uint32_t is_executed; // 1 if the command was executed, 0 if the start failed before
    uint32_t is_refused;  // 1 if this node cannot run it, although others may
    uint32_t cause;       // of a start that failed: enum start_cause
    int64_t started_wall_ms, ended_wall_ms, run_ms;
    int64_t ended_boot_ms; // the end on the boot clock of its node; 0: written by an older version
    int64_t ended_ago_ms;  // EXITED: how long before this message it had ended; 0: unknown; set by the agent
    uint64_t cpu_ms, max_rss, log_bytes;
    char *log_path;
    char *text;               // the failure: the step of the launch and the errno
    char *signals;            // the processes that a stop or warning signalled, and those that were killed
    char *tail;               // the last lines of its output when it failed, at most USAGE_TAIL_MAX bytes
    struct record_list usage; // at most one struct job_usage; added by the agent
};

/* A process whose GPU memory is in host memory. */
struct launch_saved {
    uint32_t pid;
    uint64_t start;
};

/* spool file "park": the latest order to park the attempt or to restore it, and its result. */
struct launch_park {
    uint32_t number;    // of the order
    uint32_t is_return; // of enum park_action: PARK_SAVE or PARK_RETURN
    uint32_t outcome;   // enum park_outcome; 0: it is being carried out
    uint64_t bytes;
    char *text;
    struct record_list saved; // struct launch_saved
    /* UUIDs of the GPUs whose contents were saved, if the spec has others since then, and in their order. */
    struct strings home;
    bool is_early; // it has never had its GPUs: a return lets its processes open them
    int64_t
        granted_ms; // boot clock: when a job that started early was given its GPUs; 0: it was not, or not yet
};

/* True if the attempt is parked: no process of it runs, and its GPUs are not its own. */
bool launch_is_parked(const struct launch_park *park);

/* True if the attempt runs, and no order about it is being carried out. */
bool launch_is_back(const struct launch_park *park);

/* The job's request. Options that only the shepherd needs are read from it and have no field above. All zero
 * in an entry of an older agent. */
const struct job_ask *launch_ask(const struct launch_spec *spec);

extern const struct record_type group_id_record;
extern const struct record_type device_rule_record;
extern const struct record_type launch_image_record;
extern const struct record_type launch_spec_record;
extern const struct record_type launch_started_record;
extern const struct record_type launch_exit_record;
extern const struct record_type launch_park_record;

/* The field tables, for the messages that carry these structs under their own ids. */
#define LAUNCH_STARTED_FIELDS 14
#define LAUNCH_EXIT_FIELDS    24
extern const struct record_field launch_started_fields[LAUNCH_STARTED_FIELDS];
extern const struct record_field launch_exit_fields[LAUNCH_EXIT_FIELDS];

/* Start time on the boot clock. Without boot_ms it is estimated from both clocks. */
int64_t launch_started_boot_ms(const struct launch_started *started, int64_t boot_ms, int64_t wall_ms);

/* Milliseconds since its end, at least 1; 0: unknown. `boot_ms` is the boot clock of its node, since the same
 * boot. */
int64_t launch_exit_ago_ms(const struct launch_exit *record, int64_t boot_ms);

/* True if the step writes its standard error to its own log. */
bool launch_has_error_log(const struct launch_spec *spec);

/* The name of that log, which is beside the other. The caller frees it. */
char *launch_error_log(const char *log_path);

/* Replaces the rendezvous port in the variables of an environment that contain it; missing ones are not
 * added. */
void launch_set_port(struct strings *variables, uint32_t port);

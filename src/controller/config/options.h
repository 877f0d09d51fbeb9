/* SPDX-License-Identifier: MIT */
/* The options of mgpud: command line and settings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strings.h"
#include "controller/core/core.h"

/* The source of a setting's value. */
struct setting_note {
    char *key, *value;
    char *origin; // "FILE:LINE" or "command line"
};

/* One of several controllers. */
struct cluster_settings {
    char *etcd;    // "etcd://HOST:PORT,...", NULL: this controller is the only one
    char *address; // where clients reach this one; NULL: `listen`
    char *ca, *cert, *key;
    int64_t lease_ms;
};

/* What commands in jobs on joined machines may do without a token. */
enum job_access {
    JOB_ACCESS_NONE,
    JOB_ACCESS_JOB,    // read, and change their own job
    JOB_ACCESS_SUBMIT, // submit jobs too, and change those
};

struct controller_options {
    char *config; // file, or NULL
    char *state_dir;
    char *run_dir;
    char *listen;       // "127.0.0.1:9123", "none"
    bool needs_listen;  // exit if that address cannot be bound
    char *nodes_listen; // "[::]:9124", "none"
    char *gpus;         // "auto", "nvml", "amd", "none", "sim:8x24G", "sim:8x24G:MODEL"
    char *nvml_library; // NULL: the driver's own
    char *cuda_library; // NULL: the driver's own
    char *mps_control;  // NULL: where it usually is
    char *rocm_library; // NULL: ROCm's default path
    char *device_dir;   // NULL: /dev; simulated GPUs then have no device nodes
    char *sysfs_root;
    bool is_imex_on;
    int64_t gpu_scrub_ms, gpu_test_every_ms; // of this node; 0: never
    char *sendmail;                          // on nodes
    char *munge_socket;
    char *user;          // user to run as when started as root
    char *node;          // name of the local node
    char *log_dir;       // "home", or a directory with one subdirectory per user
    char *cgroup;        // parent cgroup for jobs, NULL: below that of mgpud
    char *min_uid;       // lowest of job owners other than root: "auto" or a number
    uint32_t lowest_uid; // its value on this machine
    char *pids_max;      // processes and threads of one job: "auto" or a number
    char *job_limits;  // limits of the kernel for jobs (wire/resource_limits.h); NULL: as the agent has them
    char *program_dir; // directory of mgpu-agent and mgpu-shepherd
    char *priority_group;       // members may raise priorities, NULL: only administrators
    bool are_priorities_of_all; // all users may
    struct sched_settings sched;
    struct external_settings external;
    struct health_settings health;
    struct idle_policy idle;
    struct notification_settings notifications;
    struct loss_settings loss;
    struct park_settings park;
    struct early_settings early;
    struct cluster_settings cluster;
    int64_t max_time_ms, default_time_ms; // 0: no limit
    int64_t grace_ms;                     // between SIGTERM and SIGKILL
    int64_t start_patience_ms;            // 0: for ever
    struct core_account *accounts;        // users and groups with their own limits
    size_t n_accounts;
    struct core_partition *partitions; // the default one among them once the files are read
    size_t n_partitions;
    int64_t keep_jobs_ms;       // ended jobs are removed from the store after this time; 0: never
    uint64_t user_max_queued;   // jobs of one user that wait or run; 0: unlimited
    uint64_t user_max_stored;   // bytes of requests of one user per day; 0: unlimited
    uint64_t keep_max;          // maximum number of ended jobs kept; 0: unlimited
    struct roles *roles;        // NULL: only administrators and users
    struct setting_note *notes; // one per setting that was set
    size_t n_notes;
    char **files; // the files read, in order
    size_t n_files;
    struct strings warnings; // about settings that have no effect
    enum job_access job_access;
    bool is_munge_on;  // accept MUNGE credentials on TCP
    bool has_no_agent; // no jobs run on this machine
    bool allow_root_jobs;
    bool adopts_any_user;     // without root, too: processes of other users have GPUs
    bool has_no_new_privs;    // jobs cannot gain rights by executing a program
    uint64_t log_max;         // bytes of each file of output that are kept; 0: all
    bool is_tmp_private;      // each job has its own /tmp
    bool may_create_user;     // create `user` if missing
    bool may_watch_terminals; // administrators may view terminals of other users
    bool is_detached;
    bool is_verbose;
};

/* SPDX-License-Identifier: MIT */
/* What mgpud was told: its command line and its settings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strings.h"
#include "controller/core/core.h"

/* Where a setting has its value from. */
struct setting_note {
    char *key, *value;
    char *origin; // "FILE:LINE" or "command line"
};

struct controller_options {
    char *config; // file, or NULL
    char *state_dir;
    char *run_dir;
    char *listen;       // "127.0.0.1:9123", "none"
    char *nodes_listen; // "[::]:9124", "none"
    char *gpus;         // "auto", "nvml", "amd", "none", "sim:8x24G", "sim:8x24G:MODEL"
    char *nvml_library; // NULL: the driver's own
    char *rocm_library; // NULL: where ROCm puts it
    char *device_dir;   // NULL: /dev, and simulated GPUs have no nodes
    char *sysfs_root;
    bool is_imex_on;
    char *sendmail; // of nodes
    char *munge_socket;
    char *user;           // to become when started as root
    char *node;           // name of the local node
    char *log_dir;        // "home" or a directory that gets one directory per user
    char *cgroup;         // cgroup given for jobs, NULL: below that of mgpud
    char *pids_max;       // processes and threads of one job: "auto" or a number
    char *program_dir;    // where mgpu-agent and mgpu-shepherd are
    char *priority_group; // whose members may raise priorities, NULL: administrators alone
    struct sched_settings sched;
    struct external_settings external;
    struct health_settings health;
    struct idle_policy idle;
    struct notification_settings notifications;
    struct loss_settings loss;
    int64_t max_time_ms, default_time_ms; // 0: none
    int64_t grace_ms;                     // between SIGTERM and SIGKILL
    struct core_account *accounts;        // of users and groups with limits of their own
    size_t n_accounts;
    int64_t keep_jobs_ms;       // jobs that ended longer ago leave the store; 0: they stay
    uint64_t user_max_queued;   // jobs of one user that wait or run; 0: any number
    uint64_t user_max_stored;   // bytes of requests of one user within a day; 0: any number
    uint64_t keep_max;          // so many jobs that ended stay at most; 0: any number
    struct roles *roles;        // who may do what; NULL: administrators and users
    struct setting_note *notes; // of all that was set
    size_t n_notes;
    char **files; // that were read, in this order
    size_t n_files;
    struct strings warnings; // of what the files say and has no effect
    bool is_munge_on;        // credentials of MUNGE are believed on TCP
    bool allow_root_jobs;
    bool may_create_user;     // the one to become
    bool may_watch_terminals; // administrators may look at those of others
    bool is_detached;
    bool is_verbose;
};

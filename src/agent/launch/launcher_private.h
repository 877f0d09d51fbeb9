/* SPDX-License-Identifier: MIT */
/* Shared by launcher.c (processes, the end) and staging.c (spool entries and cgroups). */
#pragma once

#include "agent/launch/launcher.h"
#include "base/buffer.h"

#define LOG_DIR "logs" // below the state directory

/* A prepared entry and its description (staging.c); job 0: free. */
struct prepared_entry {
    struct spool_id id;
    struct buffer description;
};

struct launcher {
    char *run_dir, *state_dir, *log_dir, *exit_dir, *shepherd, *node;
    bool has_joined;
    struct job_users users;
    uint64_t nofile_soft, nofile_hard;
    const char *limits;
    uint32_t pids_max;
    bool has_no_new_privs;
    const struct gpu_devices *devices; // NULL: not known
    bool is_guarding;
    const struct error *private_tmp_err;
    const struct share_ways *shares;
    const struct confine *confine;
    struct confine_state *cells;
    const struct record_list *gpus; // of the node; NULL: not known
    struct user_resolver *resolver; // NULL: none
    struct mps *mps;                // NULL: none
    int spool_fd;
    int exits_fd;
    int scripts_fd;            // RUN/scripts
    int notify_fd;             // datagram socket for words to shepherds; -1: none
    struct spool_id guarded;   // the last entry that was written and guarded; job 0: none
    struct fork_client *forks; // NULL until the first start, and after it failed
    struct prepared_entry prepared[LAUNCHER_PREPARED_MAX];
};

/* The entry was removed, or is no longer only prepared. No effect if it was not prepared. */
void launcher_forget_prepared(struct launcher *launcher, const struct spool_id *id);

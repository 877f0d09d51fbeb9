/* SPDX-License-Identifier: MIT */
/*
 * MPS for jobs that share a GPU: one control daemon for each GPU and user, in RUN/mps/NAME, which only that
 * user (and root) can enter.
 *
 *               first job joins              commands carried out
 *      (none) ─────────────────> STARTING ─────────────────────────> READY ──last job leaves──> ENDING ──>
 * (none) └──refused, hung, died──> (none)   └──died──> (none), its jobs are told
 *
 * Allocations of a client above the limits of its daemon fail, and no client can raise them: the daemon
 * belongs to root. Where several jobs of a user share a daemon, its limits are the highest of them; each job
 * has its own in its environment, and the watch of the memory (agent/usage/meter.h) catches one that drops
 * them.
 *
 * Daemons outlive the agent: a new one finds them by RUN/mps/NAME/daemon.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/mps/control.h"
#include "base/error.h"
#include "base/spool_id.h"
#include "base/strings.h"
#include "job/launch.h"

struct mps;

struct mps_options {
    const char *program; // nvidia-cuda-mps-control
    const char *run_dir;
    const char *proc; // "/proc"
    bool is_root;
    int64_t answer_ms; // a daemon must have carried out commands within this time
};

#define MPS_ANSWER_MS 5000

/* The answer to a pending mps_join() has arrived. */
typedef void mps_ready_fn(void *arg, const struct spool_id *id);

/* The path of the program: `wanted`, or the usual path if that is NULL; the caller frees it. NULL: it does
 * not exist. */
char *mps_find(const char *wanted);

/* Copies the options and adopts the daemons of an earlier agent. */
struct mps *mps_new(
    struct event_base *base, const struct mps_options *options, mps_ready_fn *on_ready, void *arg);
/* Daemons continue. NULL is allowed. */
void mps_free(struct mps *mps);

/* A job with a share of one GPU. */
struct mps_client {
    struct spool_id id;
    uid_t uid;
    gid_t gid;
    const char *uuid;    // of the GPU
    const char *notices; // the job's file
    struct mps_limits limits;
    int cgroup_fd; // directory for a new daemon; -1: that of the agent
};

/*
 * Ensures a daemon with at least these limits for the client. 0: it is ready, and *ret_name, which the caller
 * frees, names it. -EINPROGRESS: on_ready will be called; call again then. Any other error: there is none,
 * with the reason; the next call tries again.
 */
int mps_join(struct mps *mps, const struct mps_client *client, char **ret_name, struct error *err);

/* The client of an earlier agent, by its spec. */
void mps_hold(struct mps *mps, const struct launch_spec *spec);

/* The step has ended; the last one of a daemon ends it. No effect if it is no client. */
void mps_drop(struct mps *mps, const struct spool_id *id);

/* The variables of a client of that daemon. */
void mps_set_env(
    const struct mps *mps, const char *name, const struct mps_client *client, struct strings *env);

/* Once a second: detects servers that have ended, and notifies the jobs. */
void mps_check_servers(struct mps *mps);

/* True for a server of one of the daemons. */
bool mps_is_server(const struct mps *mps, pid_t pid, uint64_t start);

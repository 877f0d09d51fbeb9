/* SPDX-License-Identifier: MIT */
/*
 * From a launch message to a running shepherd. The launcher touches files and processes and decides nothing
 * about attempts: the agent's core asks for each step (stage, start, adopt, discard) and learns the outcome
 * from the spool directory, from the pidfd it gets here, and from hints on the socket of hints.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "agent/confine/confine.h"
#include "agent/gpu/devices.h"
#include "agent/host/job_user.h"
#include "agent/host/user_resolver.h"
#include "base/error.h"
#include "base/spool.h"
#include "wire/message.h"

#define LAUNCHER_EXIT_DIR "exits" // below the state dir: exit records that nobody fetched in time

struct launcher_options {
    const char *run_dir;   // holds mgpud.sock and spool/
    const char *state_dir; // exits/ and logs/ are made below it; users must be able to pass through it
    const char *log_dir;   // "home": ~/.local/state/mgpu/logs of the user; else a directory, which gets one
                           // directory per uid; NULL: "home" for root, STATE/logs for a rootless instance
    const char *shepherd;  // path of mgpu-shepherd, which users must be able to execute
    struct job_users users;
    bool has_joined;                   // mgpud is on another machine
    uint64_t nofile_soft, nofile_hard; // RLIMIT_NOFILE of jobs; 0: as the agent found it
    uint32_t pids_max;                 // processes and threads of a job; 0: any number
    const struct gpu_devices *devices; // of this node's GPUs; borrowed, NULL: nobody knows
    bool is_guarding;                  // jobs may open those of their GPUs alone; needs `devices`
};

/* A shepherd that was started. The caller owns the pidfd, which polls readable when the shepherd is gone, and
 * reaps it with waitid(P_PIDFD). */
struct launcher_process {
    pid_t pid;
    int pidfd;
};

/* What launcher_stage() has done, when it has not failed. */
enum launcher_stage {
    LAUNCHER_STAGED,  // the spool directory and its spec are there: look at its verdict, or start
    LAUNCHER_REFUSED, // this can never run here: an exit record that says why is there already
};

struct launcher;

/* Copies the options. Makes RUN/spool (0700), STATE/exits (0700) and, where it is used, STATE/logs. `cells`
 * is borrowed and must outlive the launcher. */
int launcher_open(const struct launcher_options *options, const struct confine *confine,
    struct confine_state *cells, struct launcher **ret, struct error *err);
void launcher_close(struct launcher *launcher);

/* All GPUs of the node (struct gpu_state), borrowed for as long as the launcher is open: jobs are told of
 * their own in words that depend on the others. */
void launcher_set_gpus(struct launcher *launcher, const struct record_list *gpus);

/* Who looks users up, borrowed for as long as the launcher is open. Without it launcher_stage() does so
 * itself, and blocks for as long as that takes. */
void launcher_set_resolver(struct launcher *launcher, struct user_resolver *resolver);

/* Descriptor of RUN/spool, owned by the launcher. */
int launcher_spool_fd(const struct launcher *launcher);

/*
 * Makes the step's spool directory, cell and `spec`. Harmless when repeated: a spec that is there stays.
 * Returns an enum launcher_stage. A negative errno means that it did not work this time (memory, disk,
 * processes): no spec was written, and the agent gives the attempt back by settling "nogo".
 * -EINPROGRESS: nothing is written yet, because the user is being looked up; to be called again when he is
 * (user_resolver.h).
 */
int launcher_stage(struct launcher *launcher, const struct message_launch *launch, struct error *err);

/* Sees to it that a staged step can open no devices but those of its spec. 1 when that had to be done, 0 when
 * it was so already, -ENOENT when there is no spec or no cell, -ENODATA when it comes from an agent that
 * confined none. */
int launcher_guard(const struct launcher *launcher, const struct spool_id *id, struct error *err);

/* Starts the shepherd of a staged step. Harmless when one lives already: the second one leaves at once. */
int launcher_start(
    struct launcher *launcher, const struct spool_id *id, struct launcher_process *ret, struct error *err);

/* Starts `mgpu-shepherd --adopt` for a step whose shepherd died after the verdict "go". It first waits for
 * the lock, leaves when an exit record is there, else waits for the end of the step and writes one. */
int launcher_adopt(
    struct launcher *launcher, const struct spool_id *id, struct launcher_process *ret, struct error *err);

/* Sends a command to the step's shepherd; `signal` as in STOP. -ECONNREFUSED or -ENOENT when there is none.
 */
int launcher_command(struct launcher *launcher, const struct spool_id *id, uint32_t signal, int64_t grace_ms);

/* Has a shepherd that waits at its gate settle the verdict; `port` is that of GO. Errors as of
 * launcher_command(). */
int launcher_release(struct launcher *launcher, const struct spool_id *id, uint32_t port);

/* Writes the spool file "terms" and tells the step's shepherd to look at it; one that adopts it later looks
 * by itself. */
int launcher_update(
    struct launcher *launcher, const struct spool_id *id, const struct spool_terms *terms, struct error *err);

/* Makes the spool entry of a step that is over anew, from the durable copy of its exit record. -ENOENT: it
 * has none. */
int launcher_restore_one(struct launcher *launcher, const struct spool_id *id, struct error *err);

/* After RELEASE_ATTEMPT, or after "nogo" was reported: removes the cell, the spool directory and a copied
 * exit record. The directory goes last. -EBUSY while a process of the step lives, and nothing is removed
 * then. */
int launcher_discard(struct launcher *launcher, const struct spool_id *id);

/* At the agent's start: gives every exit record in STATE/exits whose spool directory a reboot has taken away
 * such a directory again (verdict "go", `exit`), so that it is reported like any other. */
int launcher_restore(struct launcher *launcher, struct error *err);

/*
 * Steps that the agent may learn from the spool after launcher_stage():
 *
 *   verdict none                     launcher_start(), or give it back by spool_settle(nogo)
 *   verdict go,   exit there         report EXITED
 *   verdict go,   lock held          running (report STARTED when `started` is there)
 *   verdict go,   lock free, no exit launcher_adopt()
 *   verdict nogo                     report RETURNED
 *
 * An exit record with `end` END_UNKNOWN and `is_executed` 0 proves that shepherd and init died between the
 * verdict and the gate: nothing ran, and the controller may safely run the job again.
 */

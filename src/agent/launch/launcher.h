/* SPDX-License-Identifier: MIT */
/*
 * The launcher: from a launch message to a running shepherd. It works on files and processes and makes no
 * decisions about attempts: the agent's core requests each step (stage, start, adopt, discard) and learns the
 * result from the spool directory, from the descriptor returned here, and from hints on the hint socket.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "agent/confine/confine.h"
#include "agent/gpu/devices.h"
#include "agent/host/job_user.h"
#include "agent/host/user_resolver.h"
#include "agent/mps/mps.h"
#include "base/error.h"
#include "base/spool.h"
#include "job/share.h"
#include "wire/message.h"

#define LAUNCHER_EXIT_DIR "exits" // below the state dir: exit records not fetched in time

struct launcher_options {
    const char *run_dir;   // contains mgpud.sock and spool/
    const char *state_dir; // exits/ and logs/ are created below it; users must be able to pass through it
    const char *log_dir; // "home": ~/.local/state/mgpu/logs of the user; else a directory with a subdirectory
                         // per uid; NULL: "home" for root, STATE/logs for a rootless instance
    const char *shepherd; // path of mgpu-shepherd, which users must be able to execute
    struct job_users users;
    bool has_joined;                   // mgpud is on another machine
    uint64_t nofile_soft, nofile_hard; // RLIMIT_NOFILE of jobs; 0: as found, before launcher_open() raises it
    const char *limits;                // others of the kernel for jobs, borrowed; NULL: as found
    uint32_t pids_max;                 // processes and threads of a job; 0: unlimited
    bool has_no_new_privs;             // jobs cannot gain rights by executing a program
    const struct gpu_devices *devices; // of this node's GPUs; borrowed, NULL: unknown
    const struct share_ways *shares;   // ways to enforce shares of GPUs; borrowed, NULL: none
    bool is_guarding;                  // jobs may open only their own GPUs; requires `devices`
    const struct error
        *private_tmp_err; // why no job can have its own /tmp; borrowed, NULL or code 0: each can
};

/* A started shepherd. The caller owns the descriptor, which becomes readable when the shepherd has finished
 * the step or is dead. It is a pidfd if the shepherd is a child, which is reaped with waitid(P_PIDFD). */
struct launcher_process {
    pid_t pid;
    int end_fd;
};

/* Successful results of launcher_stage(). */
enum launcher_stage {
    LAUNCHER_STAGED,  // spool directory and spec exist: check the verdict, or start
    LAUNCHER_REFUSED, // it can never run here: an exit record with the reason has been written
};

struct launcher;

/* Copies the options. Creates RUN/spool (0700), STATE/exits (0700) and, if used, STATE/logs. `cells` is
 * borrowed and must outlive the launcher. */
int launcher_open(const struct launcher_options *options, const struct confine *confine,
    struct confine_state *cells, struct launcher **ret, struct error *err);
void launcher_close(struct launcher *launcher);

/* Sets all GPUs of the node (struct gpu_state), borrowed while the launcher is open: the variables of a job
 * depend on all of them. */
void launcher_set_gpus(struct launcher *launcher, const struct record_list *gpus);

/* Sets the resolver of users, borrowed while the launcher is open. Without one, launcher_stage() does the
 * lookup itself and blocks. */
void launcher_set_resolver(struct launcher *launcher, struct user_resolver *resolver);

/* A directory created for a user is missing: the next launch creates it again. */
void launcher_forget_users(struct launcher *launcher);

/* Sets the MPS daemons, borrowed while the launcher is open. Without them no job uses MPS. */
void launcher_set_mps(struct launcher *launcher, struct mps *mps);

/* Descriptor of RUN/spool, owned by the launcher. */
int launcher_spool_fd(const struct launcher *launcher);

/* Opens the spool entry of a step. Returns its directory, or a negative errno; -ENOENT: it has none. */
int launcher_open_entry(const struct launcher *launcher, const struct spool_id *id);

/* Removes scripts, lists of hosts and notices without an entry in the spool, left by an agent that was killed
 * while it created or removed an entry. */
void launcher_sweep(const struct launcher *launcher);

/*
 * Creates the step's spool directory, cgroup and `spec`. Idempotent: an existing spec is kept. Returns an
 * enum launcher_stage. A negative errno means that it failed this time (memory, disk, processes): no spec was
 * written, and the agent returns the attempt by settling "nogo". -EINPROGRESS: nothing is written yet,
 * because the user is being looked up, or MPS is being prepared; call again when that is done
 * (user_resolver.h, mps.h).
 */
int launcher_stage(struct launcher *launcher, const struct message_launch *launch, struct error *err);

/* Limits a step of `mgpu exec` below its job by cpu_milli and memory_limit of its spec (confine.h,
 * limit_step). */
int launcher_limit_step(
    struct launcher *launcher, const struct spool_id *id, struct launch_spec *spec, struct error *err);

/*
 * The same for a job that may be next: its shepherd prepares everything up to the gate, and waits there
 * (struct launch_spec, is_prepared). Refuses nothing: any negative errno but -EINPROGRESS means that it
 * cannot be prepared. launcher_discard() ends it.
 */
int launcher_prepare(struct launcher *launcher, const struct message_launch *launch, struct error *err);
#define LAUNCHER_PREPARED_MAX 8U

/* 0: the prepared entry equals what this launch would stage, byte by byte, and its user is unchanged.
 * -ESTALE, -ENOENT: it does not. -EINPROGRESS: as for launcher_stage(). */
int launcher_take(struct launcher *launcher, const struct message_launch *launch, struct error *err);

/* Ensures that a staged step can only open the devices of its spec. 1 if a filter was attached, 0 if it was
 * there already, -ENOENT if there is no spec or no cgroup, -ENODATA if it was created by an agent that
 * restricted none. */
int launcher_guard(const struct launcher *launcher, const struct spool_id *id, struct error *err);

/* The attempt gets these GPUs (struct gpu_grant) instead of its own: in its spec and its device filter. Its
 * environment stays as it is. 1: it had others; 0: it has them already. */
int launcher_move_gpus(const struct launcher *launcher, const struct spool_id *id,
    const struct record_list *grants, struct error *err);

/* Starts the shepherd of a staged step. If one is already running, the second one exits at once. */
int launcher_start(
    struct launcher *launcher, const struct spool_id *id, struct launcher_process *ret, struct error *err);

/* Starts `mgpu-shepherd --adopt` for a step whose shepherd died after the verdict "go". It first waits for
 * the lock, exits if there is an exit record, else waits for the end of the step and writes one. */
int launcher_adopt(
    struct launcher *launcher, const struct spool_id *id, struct launcher_process *ret, struct error *err);

/* The end_fd of that process was readable and has been noticed: the shepherd may get another step. */
void launcher_note_end(struct launcher *launcher, pid_t pid);

/* Sends a command to the step's shepherd; `signal` as in STOP. -ECONNREFUSED or -ENOENT if there is none. */
int launcher_command(struct launcher *launcher, const struct spool_id *id, uint32_t signal, int64_t grace_ms);

/* Tells a shepherd that waits at its gate to settle the verdict; `port` is that of GO. Errors as for
 * launcher_command(). */
int launcher_release(struct launcher *launcher, const struct spool_id *id, uint32_t port);

/* Writes the spool file "terms" and tells the step's shepherd to read it; a shepherd that adopts the step
 * later also reads it. */
int launcher_update(
    struct launcher *launcher, const struct spool_id *id, const struct spool_terms *terms, struct error *err);

/* Recreates the spool entry of an ended step from the durable copy of its exit record. -ENOENT: there is
 * none. */
int launcher_restore_one(struct launcher *launcher, const struct spool_id *id, struct error *err);

/* After RELEASE_ATTEMPT, or after "nogo" was reported: removes the cgroup, the copied exit record and finally
 * the spool directory. -EBUSY while a process of the step is alive; nothing is then removed. */
int launcher_discard(struct launcher *launcher, const struct spool_id *id);

/* At the agent's start: recreates the spool directory (verdict "go", `exit`) of every exit record in
 * STATE/exits that lost it in a reboot, so that it is reported like any other. */
int launcher_restore(struct launcher *launcher, struct error *err);

/*
 * States of a step in the spool after launcher_stage():
 *
 *   verdict none                     launcher_start(), or return it by spool_decide(nogo)
 *   verdict go,   exit exists        report EXITED
 *   verdict go,   lock held          running (report STARTED if `started` exists)
 *   verdict go,   lock free, no exit launcher_adopt()
 *   verdict nogo                     report RETURNED
 *
 * An exit record with `end` END_UNKNOWN and `is_executed` 0 proves that shepherd and init died between the
 * verdict and the gate: nothing ran, and the controller may safely run the job again.
 */

/* SPDX-License-Identifier: MIT */
/*
 * The shepherd of one step: everything it holds while it lives. Its parts, in the order they come into play:
 *
 *   launch.c  S: lock, preparations, the user's init, verdict, gate
 *   init.c    I: becomes the user, waits at the gate, runs and reaps the command J
 *   terminal.c  the terminal, and T, the process that moves its bytes
 *   meeting.c S: of rank 0: the port where the ranks meet
 *   ready.c   S: of a rank of several: waits until the others are ready too
 *   watch.c   S: waits for the end, obeys the agent, ends what is left
 *   record.c  S: the exit record, and who has seen it
 *   terms.c   S: how long the step may run, whether it stands still
 *   status_pipe.c  S: what the job says of itself
 *   stopping.c  S: that the step is being stopped, for who adopts it
 *   node_lease.c  S: how long it may run on a node that the controller does not reach
 *   counts.c  S: what the kernel counted at the limits of the attempt
 *   adopt.c   S': the same from watch.c on, for a step whose shepherd died
 *
 * The working directory of S is the spool directory of its step (base/spool.h). S is one thread and allocates
 * nothing after the gate is open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/spool.h"
#include "job/launch.h"
#include "shepherd/init.h"
#include "shepherd/meeting.h"
#include "shepherd/status_pipe.h"
#include "shepherd/terminal.h"

/* How the program ends, for the agent and for tests. The truth about the step is in the spool only. */
enum shepherd_status {
    SHEPHERD_DONE = 0,     // an exit record is there
    SHEPHERD_USAGE = 2,    // called wrongly
    SHEPHERD_BUSY = 3,     // another shepherd holds the lock
    SHEPHERD_SETTLED = 4,  // the verdict was settled before: nothing was executed by this one
    SHEPHERD_UNUSABLE = 5, // the spool cannot be worked with; no verdict was settled
};

struct shepherd {
    struct spool_id id;
    char name[SPOOL_NAME_SIZE];
    struct launch_spec spec;
    int spool_fd;           // the spool directory, also the working directory
    int lock_fd;            // the proof of life
    int ctl_fd;             // commands come in here, hints for the agent go out
    int status_fd;          // shared with I
    int exit_fd;            // the exit record's file, with its space reserved
    int exit_copy_fd;       // directory for a durable copy, or -1
    int cgroup_fd;          // directory of the step's cgroup, or -1
    int channel_fd;         // packets from and to I: its report, the gate, "executed"
    int init_pidfd;         // -1 when I is gone (or, adopting, was never there)
    int log_fd;             // to ask for its size, and for a tail that I left to us; -1 when adopting
    off_t log_start;        // its size when the gate opened: this step's output begins there
    int64_t node_oom_kills; // counted when the gate opened; -1: not known
    pid_t init_pid;         // 0 when unknown
    bool is_adopting;       // I and J are not our children
    char *log_path;         // absolute; what I opened
    char *start_text;       // what people should know about the start, or NULL
    struct meeting meeting;
    int host_pidfd;             // of an exec step: the init of the job's own step; -1: gone, or no exec step
    struct spool_command early; // a signal that came while it waited to be let go; magic 0: none
    struct terminal terminal;
    struct status_pipe status_pipe;
    struct buffer record; // reserved for the exit record
};

/* Once per program: blocks and resets signals, sets the umask; root's is spared by the out-of-memory killer.
 * All of it is inherited by a fork. */
void shepherd_protect(void);

/* Opens the spool directory, and takes its lock: at once, or -EAGAIN; with `wait`, when its holder dies. */
int shepherd_open(struct shepherd *shepherd, const char *spool_dir, bool wait, struct error *err);

/* Everything that is needed after the gate: sockets, cgroup, reserved space. On success the standard
 * descriptors lead to /dev/null. */
int shepherd_prepare(struct shepherd *shepherd, struct error *err);

/* Sends "NAME WORD" to the agent; waits at most a second when the agent is slow. */
void shepherd_hint(const struct shepherd *shepherd, const char *word);

/* In a child: nothing of S's may live on in it, above all not the lock. The log stays open, and the pipe
 * of the job, so that it is never without a reader. */
void shepherd_drop(const struct shepherd *shepherd);

/* Closes and frees what the struct holds. */
void shepherd_close(struct shepherd *shepherd);

/* Says the error on stderr; returns SHEPHERD_UNUSABLE. */
int shepherd_complain(const struct error *err);

/* The ways to run; each returns an enum shepherd_status. */
int shepherd_launch(const char *spool_dir);
int shepherd_adopt(const char *spool_dir);

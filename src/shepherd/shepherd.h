/* SPDX-License-Identifier: MIT */
/*
 * The shepherd of one step: all its data. Its parts, in order of use:
 *
 *   launch.c  S: lock, preparations, the user's init, verdict, gate
 *   init.c    I: becomes the user, waits at the gate, runs and reaps the command J
 *   terminal.c  the terminal, and T, the process that moves its bytes
 *   meeting.c S: reserves the rendezvous port, on rank 0
 *   ready.c   S: with several ranks: waits until all are ready
 *   watch.c   S: waits for the end, executes commands of the agent
 *   watch_stop.c  S: signals and stops
 *   watch_rest.c  S: the end of the command, and processes it left running
 *   rest.c    I: the same without a cgroup
 *   gpu_wait.c  I: if the job starts before it has its GPUs, makes opening one wait
 *   roles.c   S: which processes receive a signal
 *   roll.c    S, I: number and names of processes, for the exit record
 *   record.c  S: the exit record, and whether it was fetched
 *   terms.c   S: time limit and suspension of the step
 *   status_pipe.c  S: status reports of the job
 *   stopping.c  S: notes for an adopting shepherd that the step is being stopped
 *   node_lease.c  S: how long the step may run without contact to the controller
 *   counts.c  S: the kernel's counters at the limits of the attempt
 *   adopt.c   S': the same from watch.c on, for a step whose shepherd died
 *
 * The working directory of S is the spool directory of its step (base/spool.h). S has one thread and
 * allocates nothing after the gate is open.
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

/* Exit statuses of the program, for the agent and for tests. Only the spool is authoritative about the
 * step. */
enum shepherd_status {
    SHEPHERD_DONE = 0,      // an exit record exists
    SHEPHERD_USAGE = 2,     // invalid arguments
    SHEPHERD_BUSY = 3,      // another shepherd holds the lock
    SHEPHERD_SETTLED = 4,   // the verdict was already settled: this process executed nothing
    SHEPHERD_UNUSABLE = 5,  // the spool is unusable; no verdict was settled
    SHEPHERD_WITHDRAWN = 6, // it was prepared, and its turn did not come; it settled no verdict
};

struct shepherd {
    struct spool_id id;
    char name[SPOOL_NAME_SIZE];
    struct launch_spec spec;
    int spool_fd;     // the spool directory, also the working directory
    int lock_fd;      // proves that this shepherd is alive
    int agent_fd;     // of a kept shepherd, borrowed; -1: exit after this step
    int ctl_fd;       // receives commands, sends hints to the agent
    int status_fd;    // shared with I
    int exit_fd;      // the exit record's file, with its space reserved
    int exit_copy_fd; // directory for a durable copy, or -1
    int cgroup_fd;    // directory of the step's cgroup, or -1
    int channel_fd;   // packets between S and I: its report, the gate, "executed"
    int init_pidfd;   // -1 if I has ended (or, when adopting, never existed)
    int log_fd;       // for its size, and for the last lines if I could not store them; -1 when adopting
    off_t log_start;  // size of the log when the gate opened: this step's output begins there
    int64_t node_oom_kills; // when the gate opened; -1: unknown
    pid_t init_pid;         // 0 if unknown
    bool is_exit_padded;    // the exit record's file is padded with zeros, which its length includes
    bool is_adopting;       // I and J are not children of this process
    char *log_path;         // absolute; the file that I opened
    char *start_text;       // a remark about the start, or NULL
    struct meeting meeting;
    int host_pidfd; // of an exec step: the init of the job's main step; -1: it has ended, or this is not an
                    // exec step
    struct spool_command early; // a signal received while waiting for GO; magic 0: none
    struct terminal terminal;
    struct status_pipe status_pipe;
    struct buffer record; // reserved for the exit record
};

/* Called once per program: blocks and resets signals, sets the umask, and protects root's process from the
 * OOM killer. All of it is inherited by a fork. */
void shepherd_protect(void);

/* Opens the spool directory and takes its lock. If the lock is held, returns -EAGAIN; with `wait`, waits
 * until its holder has ended. */
int shepherd_open(struct shepherd *shepherd, const char *spool_dir, bool wait, struct error *err);

/* Creates everything needed after the gate: sockets, cgroup, reserved space. On success the standard
 * descriptors are /dev/null. */
int shepherd_prepare(struct shepherd *shepherd, struct error *err);

/* Sends "NAME WORD" to the agent; waits at most a second if the agent is slow. */
void shepherd_hint(const struct shepherd *shepherd, const char *word);

/* Called in a child: closes all resources of S, above all the lock. The log stays open, and so does the job's
 * pipe, so that it always has a reader. */
void shepherd_drop(const struct shepherd *shepherd);

/* Closes and frees the contents of the struct. */
void shepherd_close(struct shepherd *shepherd);

/* Prints the error on standard error; returns SHEPHERD_UNUSABLE. */
int shepherd_complain(const struct error *err);

/* The modes of operation; each returns an enum shepherd_status. */
int shepherd_launch(const char *spool_dir);

/* As shepherd_launch(), for a kept shepherd: no child inherits `agent_fd`. *ret_is_plain is set if the step
 * was an ordinary one and has ended, so this process may launch another. */
int shepherd_launch_kept(const char *spool_dir, int agent_fd, bool *ret_is_plain);
int shepherd_adopt(const char *spool_dir);

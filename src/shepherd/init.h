/* SPDX-License-Identifier: MIT */
/*
 * The user's init: parent of the command; does everything that is done as the user. It writes its results to
 * the spool file "status" through a descriptor opened in advance, so they survive the death of a shepherd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "job/launch.h"
#include "shepherd/processes/roll.h"
#include "shepherd/steps.h"
#include "shepherd/tail.h"

#define INIT_STATUS_MAGIC 0x6d677374U
#define INIT_LOGS         4U

/* Progress of the step; it only increases. */
enum init_phase {
    INIT_WAITING,   // before the gate
    INIT_NEVER,     // the gate never opened: nothing was executed or will be
    INIT_EXECUTING, // the gate opened: the command may have run
    INIT_ENDED,     // the command has ended, or could not be executed (see `step`)
};

/* Spool file "status"; host byte order, because it does not outlive the boot. */
struct init_status {
    uint32_t magic;
    uint32_t phase;      // enum init_phase
    int32_t wait_status; // as from wait4(2), if the command was executed and has ended
    uint32_t step;       // enum launch_step that failed, STEP_NONE if the command was executed
    int32_t error;       // its errno, positive
    uint32_t leader_pid; // the command
    uint64_t leader_start;
    int64_t started_wall_ms, started_boot_ms;
    int64_t ended_wall_ms, ended_boot_ms;
    uint64_t cpu_ms, max_rss; // of the command and its children
    uint64_t log_bytes;       // at the end of the command
    uint32_t tail_bytes;      // of the last lines of output that follow this struct
    uint32_t crc;             // CRC-32C of everything before it
};

/* In the same file, behind the space for the lines: written by S for I and for an adopting shepherd when the
 * step is being stopped. It is written before the first signal, so that an end by that signal is recognized
 * as a stop. */
struct init_stop {
    uint32_t magic;
    uint32_t signal;      // the first signal sent
    uint32_t end;         // enum job_end, as in struct ending
    uint32_t is_sent;     // the signal was sent
    int64_t kill_boot_ms; // SIGKILL follows then
    int64_t grace_ms;     // the grace period that was granted
    uint32_t reserved;    // no padding
    uint32_t crc;         // CRC-32C of everything before it
};
#define INIT_STOP_MAGIC 0x6d677375U

/* Behind that, without a cgroup: processes that the command left running and that I killed. */
struct init_left {
    uint32_t magic;
    struct roll roll;
};
#define INIT_LEFT_MAGIC 0x6d677376U

/* First packet from I: ready, with the descriptor of the log, or the step that failed. */
struct init_report {
    uint32_t step;     // STEP_NONE: ready, waiting at the gate
    int32_t error;     // positive errno
    uint32_t log;      // index in init->logs of the one opened
    int32_t cwd_error; // positive errno: why cwd_fallback is used; 0: it is not used
};

/* S to I: execute. For a prepared job, it is first sent to tell the init that the job's turn has come. */
struct init_gate {
    uint32_t magic; // INIT_GATE_MAGIC
    uint32_t port;  // rendezvous port; 0: as in the environment
};
#define INIT_GATE_MAGIC 0x6d677072U

#define INIT_EXECUTED "x" // I to S: the command is running and can receive signals

/* Data that S passes to I, all prepared before the clone. */
struct init {
    struct launch_spec *spec;
    /* Absolute. For a default output: the name, the name unique to the attempt beside it, and both in the
     * fallback directory. */
    const char *logs[INIT_LOGS];
    const char *log_path_moved; // the first name, relative to cwd_fallback; NULL without one
    char **command;             // argv with two free entries before it, for scripts without "#!"
    struct strings *environment;
    bool is_confined; // the remaining processes are killed through a cgroup; otherwise by I
    int host_pidfd;   // of an exec step: the init of the job's main step; else -1
    const int *stdio; // descriptors 0, 1 and 2 of the command; NULL: /dev/null and the log
    int status_fd;
    int channel_fd;
};

/* The main function of the child. */
_Noreturn void init_run(const struct init *init);

/* Write and read the status file. Reading returns -EBADMSG if it was never completely written. */
int init_write_status(int fd, struct init_status *status);
int init_read_status(int fd, struct init_status *ret);

/* The same for the note of a stop; false if there is none. */
int init_write_stop(int fd, struct init_stop *stop);
bool init_read_stop(int fd, struct init_stop *ret);

/* And for the processes left running; `roll` is empty if there were none. */
void init_write_left(int fd, const struct roll *roll);
void init_read_left(int fd, struct roll *ret);

/* The last lines of output that I stored with that status; `text` is empty if there are none. */
void init_read_tail(int fd, const struct init_status *status, char text[TAIL_SIZE]);

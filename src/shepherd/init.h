/* SPDX-License-Identifier: MIT */
/*
 * The user's init: parent of the command, and everything that is done as the user. What it learns it writes
 * to the spool file "status", whose descriptor was opened for it, so that no death of a shepherd loses it.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "job/launch.h"
#include "shepherd/steps.h"
#include "shepherd/tail.h"

#define INIT_STATUS_MAGIC 0x6d677374U
#define INIT_LOGS         4U

/* How far the step has come; only ever grows. */
enum init_phase {
    INIT_WAITING,   // before the gate
    INIT_NEVER,     // the gate never opened: nothing was executed, nothing will be
    INIT_EXECUTING, // the gate opened: from here on the command may have run
    INIT_ENDED,     // the command ended, or could not be executed (`step` says so)
};

/* Spool file "status"; host byte order, it never leaves the boot. */
struct init_status {
    uint32_t magic;
    uint32_t phase;      // enum init_phase
    int32_t wait_status; // as from wait4(2), when the command was executed and ended
    uint32_t step;       // enum launch_step: what failed, STEP_NONE when the command was executed
    int32_t error;       // its errno, positive
    uint32_t leader_pid; // the command
    uint64_t leader_start;
    int64_t started_wall_ms, started_boot_ms;
    int64_t ended_wall_ms, ended_boot_ms;
    uint64_t cpu_ms, max_rss; // of the command and its children
    uint64_t log_bytes;       // at the end of the command
    uint32_t tail_bytes;      // of the last lines of the output, which follow this struct
    uint32_t crc;             // CRC-32C of all before it
};

/* First packet from I: ready, with the log's descriptor attached, or the step that failed. */
struct init_report {
    uint32_t step;     // STEP_NONE: ready, waits at the gate
    int32_t error;     // positive errno
    uint32_t log;      // which of init->logs it has
    int32_t cwd_error; // positive errno: why it is in cwd_fallback; 0: it is not
};

/* S to I: execute. */
struct init_gate {
    uint32_t magic; // INIT_GATE_MAGIC
    uint32_t port;  // where the ranks meet; 0: as the environment has it
};
#define INIT_GATE_MAGIC 0x6d677072U

#define INIT_EXECUTED "x" // I to S: the command runs, signals reach it

/* What I gets from S; all of it is prepared before the clone. */
struct init {
    struct launch_spec *spec;
    /* Absolute. Of a default output: the name, the attempt's own beside it, and both at the fallback. */
    const char *logs[INIT_LOGS];
    const char *log_path_moved; // the first, seen from cwd_fallback; NULL where there is none
    char **command;             // argv with two free entries before it, for scripts without "#!"
    struct strings *environment;
    bool is_confined; // a cgroup will end what is left; else I does
    const int *stdio; // 0, 1 and 2 of the command, or NULL: nothing and the log
    int status_fd;
    int channel_fd;
};

/* The child's whole life. */
_Noreturn void init_run(const struct init *init);

/* Writes and reads the status file. Reading gives -EBADMSG when it was never written whole. */
int init_write_status(int fd, struct init_status *status);
int init_read_status(int fd, struct init_status *ret);

/* The last lines that I left with that status; `text` is empty when there are none. */
void init_read_tail(int fd, const struct init_status *status, char text[TAIL_SIZE]);

/* SPDX-License-Identifier: MIT */
/*
 * What happens to a job when a program that shows it, follows it, waits for it or is connected to it ends:
 * one row per program, one column per way of ending. Programs do what their row says; the man pages and
 * docs/leaving.md are made of the same rows, and tests/system/test_leaving.py walks them.
 *
 * Nothing happens unless the row says something else. A signal that was ignored when the program began does
 * nothing, whatever the row says (leaving_signals.h).
 */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"

/* The columns. */
enum leave_way {
    LEAVE_INTERRUPT,       // SIGINT: Ctrl-C
    LEAVE_INTERRUPT_AGAIN, // soon after the first
    LEAVE_TERMINATE,       // SIGTERM
    LEAVE_HANG_UP,         // SIGHUP: the terminal was closed
    LEAVE_UNREAD,          // its standard output has no reader
    LEAVE_KILL,            // SIGKILL
    LEAVE_CUT,             // its connection to mgpud is cut
    LEAVE_WAYS,
};

enum leave_effect {
    LEAVE_NOTHING,         // the job is left as it is
    LEAVE_ENDS,            // it is cancelled
    LEAVE_INTERRUPTS,      // its processes get SIGINT
    LEAVE_SHOWS,           // its state is printed
    LEAVE_KEY,             // Ctrl-C is a key for its terminal
    LEAVE_SIGNALS_PROCESS, // the process in the job gets the signal, the job nothing
    LEAVE_ENDS_PROCESS,    // that process ends, the job does not
    LEAVE_SIGNALS_COMMAND, // the command on this machine gets the signal, the job nothing
    LEAVE_EFFECTS,
};

/* The rows. */
enum leaver {
    LEAVER_NONE, // nothing ever happens
    LEAVER_RUN,
    LEAVER_RUN_DETACH,
    LEAVER_RUN_CANCEL,
    LEAVER_RUN_TERMINAL,
    LEAVER_RUN_TERMINAL_DETACH,
    LEAVER_SHELL,
    LEAVER_SUBMIT,
    LEAVER_ATTACH,
    LEAVER_ATTACH_TERMINAL,
    LEAVER_ATTACH_READ_ONLY,
    LEAVER_LOGS,
    LEAVER_FOLLOW,
    LEAVER_WAIT,
    LEAVER_EXEC,
    LEAVER_EXEC_TERMINAL,
    LEAVER_SSH_PROXY,
    LEAVER_FORWARD,
    LEAVER_NOTEBOOK,
    LEAVER_NOTEBOOK_KEPT,
    LEAVER_PS,
    LEAVER_GPUS,
    LEAVER_NODES,
    LEAVER_TOP,
    LEAVER_WEB,
    LEAVER_MCP,
    LEAVER_SRUN,
    LEAVER_SRUN_QUICK,
    LEAVER_SRUN_TERMINAL,
    LEAVER_STEP,
    LEAVER_SALLOC,
    LEAVER_SBATCH,
    LEAVER_SATTACH,
    LEAVER_MGPU_SRUN,
    LEAVER_MGPU_SRUN_INTERACTIVE,
    LEAVER_MGPU_QUEUE,
    LEAVER_SIMPLE_SUBMIT,
    LEAVER_SIMPLE_INTERACTIVE,
    LEAVER_SIMPLE_MONITOR,
    LEAVER_TGPU,
    LEAVER_ACQUIRER,
    LEAVER_SCHEDULER,
    LEAVER_TUI,
    LEAVERS,
};

struct leaving {
    const char *program;                                        // as it is typed
    const char *when;                                           // in which it has this row, or NULL
    enum leave_effect waiting[LEAVE_WAYS], running[LEAVE_WAYS]; // while the job waits, and from its start on
};

const struct leaving *leaving_of(enum leaver leaver);

/* The way of a signal; LEAVE_WAYS: none. */
enum leave_way leaving_way(int signal);

/* The effect of the signal when it arrives first; nothing if it is not a way of ending. */
enum leave_effect leaving_effect(enum leaver leaver, bool is_waiting, int signal);

/* The heading of a column. */
const char *leaving_way_word(enum leave_way way);

/* A word or two for the effect, as in the tables of the documentation. */
const char *leaving_word(enum leave_effect effect);

/* The lines of the row in the table of docs/leaving.md: one, or one for each state of the job. */
void leaving_print_row(const struct leaving *leaving, struct buffer *out);

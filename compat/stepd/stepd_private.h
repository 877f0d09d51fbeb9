/* SPDX-License-Identifier: MIT */
/* The parts of slurmstepd. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/strings.h"
#include "compat/stepd/frames.h"
#include "compat/stepd/mpi.h"

#define STEPD_TASKS_MAX 65536U // of a node

enum stepd_stream { STREAM_OUTPUT, STREAM_ERRORS, STREAM_COUNT };

struct stepd_task {
    uint32_t id, local;
    char *input_path; // NULL: input is sent by srun
    struct strings command, variables;
    pid_t pid;             // 0: not started, or ended
    int fds[STREAM_COUNT]; // -1: end of file
    int input_fd;          // -1: closed
    struct buffer input;   // input that the task has not read yet, from `given` on
    size_t given;
    bool is_input_over;
    struct step_usage usage;
};

struct stepd {
    int in_fd, out_fd, wake_fd, signal_fd;
    struct buffer in;
    size_t taken;
    bool is_srun_gone, is_started;
    bool is_input_full;   // FRAME_INPUT_FULL was sent
    pthread_mutex_t lock; // of `out`
    struct buffer out;    // frames for srun, from `sent` on
    size_t sent;
    sigset_t mask; // of the tasks
    struct strings environment;
    char *directory;
    struct stepd_task *tasks;
    uint32_t count;
    const struct mpi_kind *mpi; // NULL: none
    void *mpi_state;
    struct mpi_setup setup;
    int64_t started_ms;
    uint64_t oom_kills; // kills that happened before, or of tasks that have ended
    uint32_t samples;
};

/* A frame for srun. May be called in any thread. */
void stepd_put(struct stepd *stepd, enum frame_type type, uint32_t task, const void *bytes, size_t length);

/* Executes a frame of srun; a negative errno ends the step. */
int stepd_take(struct stepd *stepd, const struct frame *frame, struct error *err);

/* Bytes of input that the task has not read. */
size_t stepd_unread(const struct stepd_task *task);

/* The task has closed its input. */
void stepd_close_input(struct stepd_task *task);

/* Writes unread input to the task, as much as it accepts. */
void stepd_give_input(struct stepd_task *task);

/* Informs srun when tasks have much unread input, and when they have read it. Other frames of srun are always
 * accepted: a task that waits for those of MPI does not read meanwhile. */
void stepd_report_input(struct stepd *stepd);

/* Sends a signal to one task, or to FRAME_ALL. */
void stepd_signal_tasks(const struct stepd *stepd, uint32_t id, int number);

/* Releases everything; processes of tasks are not affected. */
void stepd_clear(struct stepd *stepd);

/* Starts all tasks; the first failure ends the step. */
int stepd_start(struct stepd *stepd, struct error *err);

/* Opens the kind of MPI that the frame names; before the first task, because it allocates places for them. */
int stepd_open_mpi(struct stepd *stepd, const struct frame *frame, struct error *err);

/* SPDX-License-Identifier: MIT */
/*
 * The protocol between srun and the slurmstepd of a node, over the latter's standard input and output. A
 * frame is a header of 12 bytes, all big endian: type, task (or FRAME_ALL), length; followed by that many
 * bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/strings.h"

#define FRAME_HEAD_SIZE   12U
#define FRAME_PAYLOAD_MAX (64U << 20)
#define FRAME_ALL         UINT32_MAX // no task, or all tasks

enum frame_type {
    /* From srun. */
    FRAME_ENVIRONMENT = 'E', // words NAME=VALUE: the environment of srun
    FRAME_DIRECTORY = 'D',   // path
    FRAME_MPI = 'M',         // words: kind, name of the job, key, nodes; struct mpi_setup
    FRAME_TASK = 'T',        // words: local number, number of words of the command, file of its input or
                             // "" (FRAME_INPUT), the command, variables
    FRAME_GO = 'G',          // all tasks are known: start them
    FRAME_INPUT = 'i',
    FRAME_INPUT_END = 'c',
    FRAME_SIGNAL = 'k', // 4 bytes
    /* From slurmstepd. */
    FRAME_OUTPUT = 'o',
    FRAME_ERRORS = 'e',
    FRAME_EXIT = 'x',          // 4 bytes: status as from waitpid(2); then struct step_usage
    FRAME_OUT_OF_MEMORY = 'm', // the kernel has killed the task for lack of memory; FRAME_EXIT follows
    FRAME_USAGE = 'u',         // struct step_usage of a running task
    FRAME_FAILED = 'f',        // text: the tasks could not be started
    FRAME_ABORT = 'a',         // 4 bytes: exit code; then text: a task has called MPI_Abort
    FRAME_INPUT_FULL = 'w',    // a task reads more slowly than srun sends: no FRAME_INPUT for now
    FRAME_INPUT_READY = 'n',   // the tasks have read enough: continue with FRAME_INPUT
    /* In both directions, for MPI: data of one node for others. */
    FRAME_GATHER = 'g',       // struct gather: srun sends it back when it has the data of all nodes
    FRAME_MODEX = 'q',        // of the task: 8 bytes number of the request
    FRAME_MODEX_ANSWER = 'r', // 8 bytes number, 4 bytes status, then data
};

/* A frame that was received. */
struct frame {
    enum frame_type type;
    uint32_t task;
    const uint8_t *bytes;
    size_t length;
};

void frame_put(struct buffer *out, enum frame_type type, uint32_t task, const void *bytes, size_t length);

/* The same for words, each terminated by a NUL. */
void frame_put_words(struct buffer *out, enum frame_type type, uint32_t task, const struct strings *words);

/* Takes the next frame of `in` from *position on, and advances *position: 1, 0 if it is not complete yet,
 * -EBADMSG if it is invalid. */
int frame_take(const struct buffer *in, size_t *position, struct frame *ret);

/* Drops the bytes of frames that were taken. */
void frame_drop(struct buffer *in, size_t *position);

/* The words of a frame. False if the last one is not terminated by a NUL. */
bool frame_words(const struct frame *frame, struct strings *ret);

/* Numbers in frames, big endian; false if the frame is shorter. */
void frame_add_number(struct buffer *out, size_t size, uint64_t value);
bool frame_number(const struct frame *frame, size_t *position, size_t size, uint64_t *ret);

/* What a task has used. */
struct step_usage {
    uint64_t user_ms, system_ms;
    uint64_t max_rss; // bytes
};

void step_usage_add(struct buffer *out, const struct step_usage *usage);
bool step_usage_read(const struct frame *frame, size_t *position, struct step_usage *ret);

/* SPDX-License-Identifier: MIT */
/* The pipe that a step reads as its standard input, as seen by the process that writes to it. Counts the
 * bytes, so that a client whose standard input is a file can leave the bytes that the step has not read to
 * other readers of that file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_pipe {
    int sink_fd;       // non-blocking; -1: shut
    int count_fd;      // for reading: counts what is left in a shut pipe; -1: none
    bool is_full;      // the last write found no room
    bool is_read_over; // the step has closed the pipe: `read` is final
    uint64_t taken;    // bytes written to the pipe
    uint64_t read;     // bytes that the step has read
};

void input_pipe_init(struct input_pipe *input, int sink_fd);

/* Returns how many bytes were consumed: fewer than `length` if the pipe is full; all of them if the step has
 * closed the pipe. */
size_t input_pipe_write(struct input_pipe *input, const uint8_t *bytes, size_t length);

/* The step reads end of file after the bytes that are in the pipe. */
void input_pipe_shut(struct input_pipe *input);

/* No process of the step will read any more. Releases all resources. */
void input_pipe_end(struct input_pipe *input);

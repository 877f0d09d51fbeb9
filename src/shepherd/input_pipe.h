/* SPDX-License-Identifier: MIT */
/* The pipe that a step reads as its standard input, as seen by the process that writes to it. Counts the
 * bytes, so that a client whose standard input is a file can leave to others what the step has not read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_pipe {
    int sink_fd;       // not blocking; -1: shut
    int count_fd;      // for reading, to count what is left in a pipe that is shut; -1: none
    bool is_full;      // the last write found no room
    bool is_read_over; // the step reads no more: `read` is final
    uint64_t taken;    // bytes written to it
    uint64_t read;     // of these, bytes that the step has read
};

void input_pipe_init(struct input_pipe *input, int sink_fd);

/* Returns how many bytes are done with: fewer than `length` if the pipe is full; all of them if the step
 * reads no more. */
size_t input_pipe_write(struct input_pipe *input, const uint8_t *bytes, size_t length);

/* The step gets end of file behind what is in the pipe. */
void input_pipe_shut(struct input_pipe *input);

/* No process of the step will read any more. Releases everything. */
void input_pipe_end(struct input_pipe *input);

/* SPDX-License-Identifier: MIT */
/*
 * What T sends to the client of an exec step. With a key, frames are kept until the client has confirmed
 * them, and a client that lost its connection (because mgpud or a node's uplink restarted) receives the rest
 * on the next connection. Without a key, frames that the connection has accepted are discarded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/containers/resend.h"
#include "shepherd/input_pipe.h"
#include "shepherd/terminal_viewer.h"

struct exec_stream {
    struct resend out;
    bool can_return;     // the exec step has a key
    bool has_end;        // the last frame was added
    uint64_t confirmed;  // position in the client's frames that was last confirmed
    struct resend input; // input that the process has not read; frames behind it, such as confirmations, are
                         // not held up
    bool is_input_over;
};

void exec_stream_init(struct exec_stream *stream, bool can_return);

/* How many bytes of output fit into a frame now; 0: none. */
size_t exec_stream_room(const struct exec_stream *stream);

/* Adds a frame. exec_stream_room() has reported space for it, or it is one of the other kinds, for which
 * space is reserved. */
void exec_stream_put(
    struct exec_stream *stream, enum terminal_frame type, const void *payload, size_t length);

/* Sends the first frame of a new connection. `position`: bytes of frames that its client has received. False
 * if that position is impossible. */
bool exec_stream_greet(struct exec_stream *stream, struct viewer *viewer, uint64_t position);

/* Sends what the socket accepts. False if the viewer has left; it is then closed. */
bool exec_stream_send(struct exec_stream *stream, struct viewer *viewer);

/* True if there is something to send. */
bool exec_stream_has_more(const struct exec_stream *stream, const struct viewer *viewer);

/* The client has received this many bytes of frames. */
void exec_stream_confirm(struct exec_stream *stream, uint64_t position);

/* Confirms the client's frames from time to time. */
void exec_stream_answer(struct exec_stream *stream, const struct viewer *viewer);

/* Takes input of the client; returns how many bytes. Without a key, input is passed on at once or not
 * taken. */
size_t exec_stream_take_input(struct exec_stream *stream, const uint8_t *bytes, size_t length);

/* Writes waiting input to the process. False if it accepts no more now. True if all is written, or no process
 * reads it. */
bool exec_stream_write_input(struct exec_stream *stream, struct input_pipe *to);

/* True if the client has received everything. */
bool exec_stream_is_over(const struct exec_stream *stream, const struct viewer *viewer);

/* SPDX-License-Identifier: MIT */
/*
 * The frames of a session, in both directions. Those of an exec with a key outlive their connection: frames
 * that the other side has not confirmed are resent on the next one, and it resends those that have not
 * arrived here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/containers/resend.h"
#include "base/terminal.h"

struct session_stream {
    struct resend out;
    uint8_t *ring;
    uint64_t key;       // of an exec; 0: its process, or the terminal, is found by the job alone
    bool is_kept;       // the other side keeps frames, too
    bool is_greeted;    // by the first frame of this connection
    uint64_t received;  // bytes of frames
    uint64_t confirmed; // of these, confirmed
    uint64_t read;      // bytes of ours, up to which the process has read its input
};

/* `has_key`: frames are kept if the other side does the same. -errno. */
int session_stream_init(struct session_stream *stream, bool has_key);
void session_stream_clear(struct session_stream *stream);

/* A new connection: nothing is sent before its greeting, if there is a key. */
void session_stream_join(struct session_stream *stream);

/* True if no more input is to be read now. */
bool session_stream_is_full(const struct session_stream *stream);

void session_stream_put(
    struct session_stream *stream, enum terminal_frame type, const void *payload, size_t length);

/* True if there is something to send now. */
bool session_stream_has_more(const struct session_stream *stream);

/* Sends as much as the socket accepts. Errors are detected by reading. */
void session_stream_send(struct session_stream *stream, int fd);

/* Handles a complete frame. True if it concerned only this stream. */
bool session_stream_take(struct session_stream *stream, uint8_t type, const uint8_t *payload, size_t length);

/* Confirms everything that has come. */
void session_stream_confirm(struct session_stream *stream);

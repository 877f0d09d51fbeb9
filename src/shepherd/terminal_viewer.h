/* SPDX-License-Identifier: MIT */
/*
 * A viewer of a terminal: the frames being sent, one at a time, and those received. All memory a viewer can
 * occupy is in this struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/terminal.h"
#include "shepherd/terminal_history.h"

#define VIEWER_INPUT_SIZE 4096U

struct viewer {
    int fd; // -1: unused
    bool is_read_only;
    bool has_end;    // the last frame is being sent
    uint64_t serial; // the newest viewer has the highest number
    struct terminal_size size;
    uint64_t position; // of the next output
    /* sending */
    size_t out_length, out_sent;
    uint8_t out[TERMINAL_HEAD_SIZE + TERMINAL_PAYLOAD_MAX];
    /* receiving: bytes of `in` from `in_at` on; `left` bytes of the frame `type` are missing */
    size_t in_at, in_length;
    uint64_t taken; // bytes of frames, over all connections of an exec
    uint8_t type;
    size_t left;
    uint8_t in[VIEWER_INPUT_SIZE];
};

/* Handlers for a viewer's frames. */
struct viewer_acts {
    void *arg;
    /* Accepts input; returns how much, which is less than `length` if the step does not read. */
    size_t (*input)(void *arg, const uint8_t *bytes, size_t length);
    void (*input_end)(void *arg);
    void (*input_cut)(void *arg); // or NULL: ignored
    void (*window)(void *arg, struct viewer *viewer);
    void (*signal)(void *arg, int number);
    void (*leave)(void *arg); // or NULL, as the next
    void (*confirmed)(void *arg, uint64_t position);
};

void viewer_open(struct viewer *viewer, int fd, const struct terminal_visit *visit, uint64_t serial);
void viewer_close(struct viewer *viewer);

/* The same viewer on a new connection: it continues after the frames received so far. */
void viewer_return(struct viewer *viewer, int fd, const struct terminal_visit *visit, uint64_t serial);

static inline bool viewer_is_open(const struct viewer *viewer)
{
    return viewer->fd >= 0;
}

/* True if nothing is being sent. */
static inline bool viewer_is_idle(const struct viewer *viewer)
{
    return viewer->out_sent == viewer->out_length;
}

/* Sets the next frame to be sent; only if the viewer is idle. */
void viewer_put(struct viewer *viewer, enum terminal_frame type, const void *payload, size_t length);

/* Adds a frame to the one being sent. False if there is no room for it. */
bool viewer_add(struct viewer *viewer, enum terminal_frame type, const void *payload, size_t length);

/* Sends what the socket accepts. False if the viewer has left; it is then closed. */
bool viewer_send(struct viewer *viewer);

/* Sends output from the history as far as the socket accepts it. False as above. */
bool viewer_follow(struct viewer *viewer, const struct history *history);

/* Reads and handles frames. False if the viewer has left or sent invalid data; it is then closed. */
bool viewer_receive(struct viewer *viewer, const struct viewer_acts *acts);

/* True while input could not be passed on; no more is read from this viewer meanwhile. */
bool viewer_is_waiting(const struct viewer *viewer);

/* Tries again to pass on that input; otherwise like viewer_receive. */
bool viewer_resume(struct viewer *viewer, const struct viewer_acts *acts);

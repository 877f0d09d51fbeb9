/* SPDX-License-Identifier: MIT */
/*
 * One viewer of a terminal: the frames on its way out, one at a time, and those that come in. Everything it
 * can make us keep is in this struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/terminal.h"
#include "shepherd/terminal_history.h"

#define VIEWER_INPUT_SIZE 4096U

struct viewer {
    int fd; // -1: this place is free
    bool is_read_only;
    bool has_end;    // the last frame is on its way
    uint64_t serial; // the newest has the highest
    struct terminal_size size;
    uint64_t position; // of the output that comes next
    /* out */
    size_t out_length, out_sent;
    uint8_t out[TERMINAL_HEAD_SIZE + TERMINAL_PAYLOAD_MAX];
    /* in: bytes of `in` from `in_at` on; `left` bytes of the frame `type` are still to come */
    size_t in_at, in_length;
    uint8_t type;
    size_t left;
    uint8_t in[VIEWER_INPUT_SIZE];
};

/* What a viewer's frames do. */
struct viewer_acts {
    void *arg;
    /* Takes input; returns how much, which is less when the step does not read. */
    size_t (*input)(void *arg, const uint8_t *bytes, size_t length);
    void (*input_end)(void *arg);
    void (*window)(void *arg, struct viewer *viewer);
    void (*signal)(void *arg, int number);
};

void viewer_open(struct viewer *viewer, int fd, const struct terminal_visit *visit, uint64_t serial);
void viewer_close(struct viewer *viewer);

static inline bool viewer_is_open(const struct viewer *viewer)
{
    return viewer->fd >= 0;
}

/* Nothing is on its way out. */
static inline bool viewer_is_idle(const struct viewer *viewer)
{
    return viewer->out_sent == viewer->out_length;
}

/* Makes a frame the next to go out; only when the viewer is idle. */
void viewer_put(struct viewer *viewer, enum terminal_frame type, const void *payload, size_t length);

/* Where the payload of the next frame is made in place, and that it is whole. */
uint8_t *viewer_payload(struct viewer *viewer);
void viewer_commit(struct viewer *viewer, enum terminal_frame type, size_t length);

/* Sends what the socket takes. False when the viewer has gone; it is closed then. */
bool viewer_send(struct viewer *viewer);

/* Sends output from the history as far as the socket takes it. False as above. */
bool viewer_follow(struct viewer *viewer, const struct history *history);

/* Reads what is there and acts. False when the viewer has gone or speaks nonsense; it is closed then. */
bool viewer_receive(struct viewer *viewer, const struct viewer_acts *acts);

/* Input that could not be taken waits: nothing more is read from this viewer. */
bool viewer_is_waiting(const struct viewer *viewer);

/* Tries again with what waits; as viewer_receive. */
bool viewer_resume(struct viewer *viewer, const struct viewer_acts *acts);

/* SPDX-License-Identifier: MIT */
/*
 * Output: only one frame is built at a time, so the memory for a viewer is one frame, and its lag is a
 * number. Input: bytes that the step does not accept stay in `in`, and the socket is not read meanwhile, so
 * the sender waits.
 */
#include "shepherd/terminal_viewer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAMES_A_TURN 8 // then other viewers get their turn

void viewer_open(struct viewer *viewer, int fd, const struct terminal_visit *visit, uint64_t serial)
{
    viewer->fd = fd;
    viewer->is_read_only = visit->is_read_only != 0;
    viewer->has_end = false;
    viewer->serial = serial;
    viewer->size = visit->size;
    viewer->position = visit->position;
    viewer->out_length = viewer->out_sent = 0;
    viewer->in_at = viewer->in_length = 0;
    viewer->taken = 0;
    viewer->type = 0;
    viewer->left = 0;
}

void viewer_return(struct viewer *viewer, int fd, const struct terminal_visit *visit, uint64_t serial)
{
    uint64_t taken = viewer->taken;
    uint8_t type = viewer->type;
    size_t left = viewer->left;
    viewer_close(viewer);
    viewer_open(viewer, fd, visit, serial);
    viewer->taken = taken;
    viewer->type = type;
    viewer->left = left;
}

void viewer_close(struct viewer *viewer)
{
    if (viewer->fd >= 0)
        (void)close(viewer->fd);
    viewer->fd = -1;
}

static bool drop(struct viewer *viewer)
{
    viewer_close(viewer);
    return false;
}

/* --- out --- */

/* The buffer in which the next frame's payload is built; commit() completes it. */
static uint8_t *payload_of(struct viewer *viewer)
{
    return viewer->out + TERMINAL_HEAD_SIZE;
}

static void commit(struct viewer *viewer, enum terminal_frame type, size_t length)
{
    terminal_head(viewer->out, type, length);
    viewer->out_length = TERMINAL_HEAD_SIZE + length;
    viewer->out_sent = 0;
}

void viewer_put(struct viewer *viewer, enum terminal_frame type, const void *payload, size_t length)
{
    memcpy(payload_of(viewer), payload, length);
    commit(viewer, type, length);
}

bool viewer_add(struct viewer *viewer, enum terminal_frame type, const void *payload, size_t length)
{
    if (viewer_is_idle(viewer))
        viewer->out_length = viewer->out_sent = 0;
    uint8_t *at = viewer->out + viewer->out_length;
    if (sizeof(viewer->out) - viewer->out_length < TERMINAL_HEAD_SIZE + length)
        return false;
    terminal_head(at, type, length);
    memcpy(at + TERMINAL_HEAD_SIZE, payload, length);
    viewer->out_length += TERMINAL_HEAD_SIZE + length;
    return true;
}

bool viewer_send(struct viewer *viewer)
{
    while (!viewer_is_idle(viewer)) {
        ssize_t n = send(viewer->fd, viewer->out + viewer->out_sent, viewer->out_length - viewer->out_sent,
            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? true : drop(viewer);
        viewer->out_sent += (size_t)n;
    }
    return true;
}

/* Skips output that is no longer kept, and sends the viewer the number of bytes. */
static void skip(struct viewer *viewer, const struct history *history)
{
    uint8_t skipped[8];
    uint64_t oldest = history_oldest(history);
    terminal_put(skipped, sizeof(skipped), oldest - viewer->position);
    viewer->position = oldest;
    viewer_put(viewer, TERMINAL_SKIPPED, skipped, sizeof(skipped));
}

bool viewer_follow(struct viewer *viewer, const struct history *history)
{
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        if (!viewer_send(viewer))
            return false;
        if (!viewer_is_idle(viewer))
            return true;
        ssize_t n = history_read(history, viewer->position, payload_of(viewer), TERMINAL_PAYLOAD_MAX);
        if (n == 0)
            return true;
        if (n < 0) {
            skip(viewer, history);
            continue;
        }
        viewer->position += (uint64_t)n;
        commit(viewer, TERMINAL_OUTPUT, (size_t)n);
    }
    return viewer_send(viewer);
}

/* --- in --- */

static void on_window(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload)
{
    viewer->size.rows = (uint16_t)terminal_get(payload, 2);
    viewer->size.columns = (uint16_t)terminal_get(payload + 2, 2);
    acts->window(acts->arg, viewer);
}

static void on_signal(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload)
{
    if (!viewer->is_read_only)
        acts->signal(acts->arg, payload[0]);
}

static void on_input_end(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload)
{
    if (!viewer->is_read_only)
        acts->input_end(acts->arg);
}

static void on_input_cut(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload)
{
    if (!viewer->is_read_only && acts->input_cut != NULL)
        acts->input_cut(acts->arg);
}

static void on_leave(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload)
{
    if (acts->leave != NULL)
        acts->leave(acts->arg);
}

static void on_confirmed(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload)
{
    if (acts->confirmed != NULL)
        acts->confirmed(acts->arg, terminal_get(payload, 8));
}

static void take(struct viewer *viewer, size_t length)
{
    viewer->in_at += length;
    viewer->taken += length;
}

/* Frames of a fixed length, which are processed when they are complete. */
static const struct {
    uint8_t type;
    size_t length;
    void (*on)(struct viewer *viewer, const struct viewer_acts *acts, const uint8_t *payload);
} controls[] = {
    { TERMINAL_WINDOW, 4, on_window },
    { TERMINAL_SIGNAL, 1, on_signal },
    { TERMINAL_INPUT_END, 0, on_input_end },
    { TERMINAL_INPUT_CUT, 0, on_input_cut },
    { TERMINAL_LEAVE, 0, on_leave },
    { TERMINAL_CONFIRMED, 8, on_confirmed },
};

/* The part after the head is processed in pieces. */
static void begin_body(struct viewer *viewer, uint8_t type, size_t length)
{
    take(viewer, TERMINAL_HEAD_SIZE);
    viewer->type = type;
    viewer->left = length;
}

/* 1: done, 0: more bytes are needed, -1: invalid. */
static int apply_control(struct viewer *viewer, const struct viewer_acts *acts, uint8_t type, size_t length)
{
    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        if (controls[i].type != type)
            continue;
        if (controls[i].length != length)
            return -1;
        if (viewer->in_length - viewer->in_at < TERMINAL_HEAD_SIZE + length)
            return 0;
        take(viewer, TERMINAL_HEAD_SIZE);
        controls[i].on(viewer, acts, viewer->in + viewer->in_at);
        take(viewer, length);
        return 1;
    }
    begin_body(viewer, type, length); // sent by a newer viewer; this step can ignore it
    return 1;
}

/* Processes a part of the input. 1: continue, 0: nothing to do now, -1: invalid. */
static int advance(struct viewer *viewer, const struct viewer_acts *acts)
{
    size_t there = viewer->in_length - viewer->in_at, length;
    uint8_t type;
    if (viewer->left > 0) {
        size_t n = there < viewer->left ? there : viewer->left;
        bool is_dropped = viewer->is_read_only || viewer->type != TERMINAL_INPUT || n == 0;
        size_t taken = is_dropped ? n : acts->input(acts->arg, viewer->in + viewer->in_at, n);
        take(viewer, taken);
        viewer->left -= taken;
        return taken > 0;
    }
    if (there < TERMINAL_HEAD_SIZE)
        return 0;
    if (!terminal_read_head(viewer->in + viewer->in_at, &type, &length))
        return -1;
    if (type != TERMINAL_INPUT)
        return apply_control(viewer, acts, type, length);
    begin_body(viewer, type, length);
    return 1;
}

bool viewer_resume(struct viewer *viewer, const struct viewer_acts *acts)
{
    int r;
    do
        r = advance(viewer, acts);
    while (r > 0);
    return r < 0 ? drop(viewer) : true;
}

bool viewer_is_waiting(const struct viewer *viewer)
{
    return viewer->left > 0 && viewer->in_length > viewer->in_at;
}

bool viewer_receive(struct viewer *viewer, const struct viewer_acts *acts)
{
    memmove(viewer->in, viewer->in + viewer->in_at, viewer->in_length - viewer->in_at);
    viewer->in_length -= viewer->in_at;
    viewer->in_at = 0;
    ssize_t n = recv(
        viewer->fd, viewer->in + viewer->in_length, sizeof(viewer->in) - viewer->in_length, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? true : drop(viewer);
    if (n == 0)
        return drop(viewer);
    viewer->in_length += (size_t)n;
    return viewer_resume(viewer, acts);
}

/* SPDX-License-Identifier: MIT */
/* Frames on a libevent stream: each is one record of the message table (wire/message.h). */
#pragma once

#include <event2/bufferevent.h>
#include <stddef.h>

#include "base/error.h"
#include "base/record.h"

enum frame_taken { FRAME_NONE, FRAME_WHOLE, FRAME_PARTLY };

/*
 * Takes one complete frame from the received data. FRAME_WHOLE: sets *ret_type and *ret_message, which the
 * caller passes to frame_free(); FRAME_PARTLY: the same, but fields over their limits are missing, and `err`
 * describes the first; FRAME_NONE: the frame is incomplete; -EBADMSG: not a frame, longer than `max_length`,
 * or damaged. Valid frames of unknown types are skipped.
 *
 * FRAME_PARTLY is the sender's error in one message. Ending the link would not help, because the message
 * would be resent after each reconnect. The caller uses what it can of such a message, reports it, and
 * continues.
 */
int frame_take(struct bufferevent *stream, size_t max_length, const struct record_type **ret_type,
    void **ret_message, struct error *err);

/* Receives a message, possibly without the fields that exceeded their limits; a negative result ends the
 * link. */
typedef int frame_taker_fn(
    void *arg, enum frame_taken taken, const struct record_type *type, void *message, struct error *err);

/* Processes all received frames; 0, or the reason to end the link. */
int frame_take_all(
    struct bufferevent *stream, size_t max_length, frame_taker_fn *taker, void *arg, struct error *err);

void frame_free(const struct record_type *type, void *message);

/*
 * Sends one message, at once or after those already waiting. One longer than the peer accepts would end the
 * link, and would be resent on the next; it is therefore sent without its spare fields, such as the processes
 * on GPUs, or the request of a launch, which is then refused. Returns 1 with `err` in this case; -EMSGSIZE if
 * it is too long even without them, and nothing is sent.
 */
int frame_send(
    struct bufferevent *stream, const struct record_type *type, const void *message, struct error *err);

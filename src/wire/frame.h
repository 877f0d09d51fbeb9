/* SPDX-License-Identifier: MIT */
/* Frames on a libevent stream: one record of the message table each (wire/message.h). */
#pragma once

#include <event2/bufferevent.h>
#include <stddef.h>

#include "base/error.h"
#include "base/record.h"

enum frame_taken { FRAME_NONE, FRAME_WHOLE, FRAME_PARTLY };

/*
 * Takes one whole frame off the front of what has come in. FRAME_WHOLE: *ret_type and *ret_message, which the
 * caller gives to frame_free(); FRAME_PARTLY: the same, but fields that are over their limits are missing,
 * and `err` tells of the first of them; FRAME_NONE: it is not all there yet; -EBADMSG: no frame, longer than
 * `max_length`, or broken. A sound frame of an unknown type is passed over.
 *
 * FRAME_PARTLY is a mistake of the sender's about one message. Ending the link for it would end it again
 * after each new one, for what it is about is said again: the caller takes what it can do with such a
 * message, says so, and goes on.
 */
int frame_take(struct bufferevent *stream, size_t max_length, const struct record_type **ret_type,
    void **ret_message, struct error *err);

/* Gets a message of which the fields that are over their limits may be missing, and ends the link by a
 * negative result. */
typedef int frame_taker_fn(
    void *arg, enum frame_taken taken, const struct record_type *type, void *message, struct error *err);

/* Takes what is there, frame by frame; 0, or why the link is to be ended. */
int frame_take_all(
    struct bufferevent *stream, size_t max_length, frame_taker_fn *taker, void *arg, struct error *err);

void frame_free(const struct record_type *type, void *message);

/*
 * Sends one message, at once when nothing waits before it, else after that. One that is longer than the other
 * side takes would end the link, and be sent again on the next: it goes without its spare fields, such as
 * the processes on GPUs, or the request of a launch, which is then refused. 1 and `err` says so; -EMSGSIZE
 * when it is too long without them as well, and nothing is sent.
 */
int frame_send(
    struct bufferevent *stream, const struct record_type *type, const void *message, struct error *err);

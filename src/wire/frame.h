/* SPDX-License-Identifier: MIT */
/* Frames on a libevent stream: one record of the message table each (wire/message.h). */
#pragma once

#include <event2/bufferevent.h>
#include <stddef.h>

#include "base/error.h"
#include "base/record.h"

/*
 * Takes one whole frame off the front of what has come in. 1: *ret_type and *ret_message, which the caller
 * gives to frame_free(); 0: it is not all there yet; -EBADMSG: no frame, longer than `max_length`, or broken.
 * A sound frame of an unknown type is passed over.
 */
int frame_take(struct bufferevent *stream, size_t max_length, const struct record_type **ret_type,
    void **ret_message, struct error *err);

void frame_free(const struct record_type *type, void *message);

/* Sends one message, at once when nothing waits before it, else after that. */
void frame_send(struct bufferevent *stream, const struct record_type *type, const void *message);

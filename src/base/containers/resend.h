/* SPDX-License-Identifier: MIT */
/*
 * One direction of a byte stream that outlives its connections: bytes are kept until the other side has
 * confirmed them, and sent again on the next connection from where the other side has them. The caller
 * provides the storage: one user (shepherd/terminal_exec.h) must not allocate.
 *
 *   begin ── confirmed up to here; `sent` ── given to this connection up to here; `end` ── put up to here
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resend {
    uint8_t *ring;
    size_t size;
    uint64_t begin, sent, end; // positions in the stream
};

void resend_init(struct resend *resend, uint8_t *ring, size_t size);

/* How many bytes more can be kept. */
size_t resend_room(const struct resend *resend);

/* Appends them all: false, and nothing is appended, if there is no room. */
bool resend_put(struct resend *resend, const void *bytes, size_t length);

/* The next bytes to send, which lie together: their number, 0 if all have been sent. */
size_t resend_next(const struct resend *resend, const uint8_t **ret);

/* The connection accepted `length` of these bytes. */
void resend_sent(struct resend *resend, size_t length);

/* The other side has all bytes before `position`. False: it names bytes that it cannot have. */
bool resend_confirm(struct resend *resend, uint64_t position);

/* A new connection, whose other side has all bytes before `position`: the rest is sent again. False as above.
 */
bool resend_rewind(struct resend *resend, uint64_t position);

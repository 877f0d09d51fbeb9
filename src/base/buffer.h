/* SPDX-License-Identifier: MIT */
/* A growable byte buffer. Appending never fails: the program aborts when memory is exhausted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

struct buffer {
    uint8_t *bytes; // NULL while empty; not terminated unless buffer_text was called
    size_t length;
    size_t capacity;
};

void buffer_append(struct buffer *buffer, const void *bytes, size_t length);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_printf(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The bytes as a terminated string, owned by the buffer; valid until the next append. */
char *buffer_text(struct buffer *buffer);

/* The bytes as a terminated string that the caller frees; the buffer is left empty. */
char *buffer_take(struct buffer *buffer);

void buffer_clear(struct buffer *buffer);

#define _cleanup_buffer_ _cleanup_(buffer_clear)

/* SPDX-License-Identifier: MIT */
/* Capacity doubles, so that appending byte by byte stays linear. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void reserve(struct buffer *buffer, size_t more)
{
    if (more > SIZE_MAX / 2 - buffer->length)
        abort();
    size_t wanted = buffer->length + more + 1;
    if (wanted <= buffer->capacity)
        return;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : 64;
    while (capacity < wanted)
        capacity *= 2;
    buffer->bytes = xreallocarray(buffer->bytes, capacity, 1);
    buffer->capacity = capacity;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t length)
{
    if (length == 0)
        return;
    reserve(buffer, length);
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n > 0) {
        reserve(buffer, (size_t)n);
        (void)vsnprintf((char *)buffer->bytes + buffer->length, (size_t)n + 1, format, again);
        buffer->length += (size_t)n;
    }
    va_end(again);
}

char *buffer_text(struct buffer *buffer)
{
    reserve(buffer, 0);
    buffer->bytes[buffer->length] = '\0';
    return (char *)buffer->bytes;
}

char *buffer_take(struct buffer *buffer)
{
    char *text = buffer_text(buffer);
    *buffer = (struct buffer){ 0 };
    return text;
}

void buffer_clear(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){ 0 };
}

/* SPDX-License-Identifier: MIT */
#include "compat/stepd/frames.h"

#include <errno.h>
#include <string.h>

#include "base/terminal.h"

void frame_put(struct buffer *out, enum frame_type type, uint32_t task, const void *bytes, size_t length)
{
    uint8_t head[FRAME_HEAD_SIZE];
    terminal_put(head, 4, (uint64_t)type);
    terminal_put(head + 4, 4, task);
    terminal_put(head + 8, 4, length);
    buffer_append(out, head, sizeof(head));
    if (length > 0)
        buffer_append(out, bytes, length);
}

void frame_put_words(struct buffer *out, enum frame_type type, uint32_t task, const struct strings *words)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (size_t i = 0; i < words->count; i++)
        buffer_append(&text, words->items[i], strlen(words->items[i]) + 1);
    frame_put(out, type, task, text.bytes, text.length);
}

int frame_take(const struct buffer *in, size_t *position, struct frame *ret)
{
    size_t left = in->length - *position;
    if (left < FRAME_HEAD_SIZE)
        return 0;
    const uint8_t *head = in->bytes + *position;
    size_t length = (size_t)terminal_get(head + 8, 4);
    if (length > FRAME_PAYLOAD_MAX)
        return -EBADMSG;
    if (left < FRAME_HEAD_SIZE + length)
        return 0;
    *ret = (struct frame){ .type = (enum frame_type)terminal_get(head, 4),
        .task = (uint32_t)terminal_get(head + 4, 4),
        .bytes = head + FRAME_HEAD_SIZE,
        .length = length };
    *position += FRAME_HEAD_SIZE + length;
    return 1;
}

void frame_drop(struct buffer *in, size_t *position)
{
    size_t left = in->length - *position;
    if (*position > 0 && left > 0)
        memmove(in->bytes, in->bytes + *position, left);
    in->length = left;
    *position = 0;
}

bool frame_words(const struct frame *frame, struct strings *ret)
{
    const char *text = (const char *)frame->bytes;
    if (frame->length > 0 && text[frame->length - 1] != '\0')
        return false;
    for (size_t i = 0; i < frame->length; i += strlen(text + i) + 1)
        strings_add(ret, text + i);
    return true;
}

void frame_add_number(struct buffer *out, size_t size, uint64_t value)
{
    uint8_t bytes[8];
    terminal_put(bytes, size, value);
    buffer_append(out, bytes, size);
}

bool frame_number(const struct frame *frame, size_t *position, size_t size, uint64_t *ret)
{
    if (frame->length < *position + size)
        return false;
    *ret = terminal_get(frame->bytes + *position, size);
    *position += size;
    return true;
}

void step_usage_add(struct buffer *out, const struct step_usage *usage)
{
    frame_add_number(out, 8, usage->user_ms);
    frame_add_number(out, 8, usage->system_ms);
    frame_add_number(out, 8, usage->max_rss);
}

bool step_usage_read(const struct frame *frame, size_t *position, struct step_usage *ret)
{
    return frame_number(frame, position, 8, &ret->user_ms) &&
           frame_number(frame, position, 8, &ret->system_ms) &&
           frame_number(frame, position, 8, &ret->max_rss);
}

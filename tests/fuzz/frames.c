/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what comes over a link between mgpud and an agent, cut anywhere: no frame is taken that is
 * longer than its limit, what is taken could be sent again, and the same bytes are the same messages however
 * they were cut. The first byte chooses the cuts. An input that begins with 'F' holds the bodies of frames,
 * each behind two bytes of type and two of length: head and checksum are put around them here.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <string.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "fuzz.h"
#include "wire/frame.h"
#include "wire/message.h"

static void put(struct buffer *out, uint32_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        buffer_append(out, &(uint8_t){ (uint8_t)(value >> (8 * i)) }, 1);
}

static void put_frame(struct buffer *out, uint16_t id, const uint8_t *body, size_t length)
{
    size_t begin = out->length;
    put(out, RECORD_MAGIC, 4);
    put(out, id, 2);
    put(out, 0, 2);
    put(out, (uint32_t)length, 4);
    buffer_append(out, body, length);
    put(out, crc32c(0, out->bytes + begin, out->length - begin), 4);
}

static void make_frames(struct buffer *out, const uint8_t *bytes, size_t length)
{
    while (length >= 4) {
        uint16_t id = (uint16_t)(MESSAGE_HELLO + bytes[0] % 100);
        size_t n = (size_t)bytes[2] | (size_t)bytes[3] << 8;
        bytes += 4, length -= 4;
        n = n < length ? n : length;
        put_frame(out, id, bytes, n);
        bytes += n, length -= n;
    }
}

/* What was taken whole is within all limits, and so can be sent again. */
static uint64_t examine(int taken, const struct record_type *type, const void *message)
{
    struct error err = { 0 };
    struct buffer again = { 0 };
    if (taken == FRAME_WHOLE && record_check(type, message, &err) < 0)
        abort();
    record_encode(type, message, &again);
    uint64_t sum = crc32c(0, again.bytes, again.length) + type->id;
    if (again.length > LINK_MESSAGE_MAX)
        abort();
    buffer_clear(&again);
    return sum;
}

static uint64_t feed(struct event_base *base, const struct buffer *bytes, size_t piece)
{
    struct bufferevent *ends[2];
    uint64_t sum = 1;
    if (bufferevent_pair_new(base, 0, ends) < 0)
        abort();
    struct evbuffer *input = bufferevent_get_input(ends[1]);
    evbuffer_unfreeze(input, 0);
    for (size_t at = 0; at < bytes->length;) {
        size_t n = bytes->length - at < piece ? bytes->length - at : piece;
        (void)evbuffer_add(input, bytes->bytes + at, n);
        at += n;
        for (;;) {
            const struct record_type *type = NULL;
            void *message = NULL;
            struct error err = { 0 };
            int taken = frame_take(ends[1], LINK_MESSAGE_MAX, &type, &message, &err);
            if (taken == FRAME_NONE)
                break;
            if (taken < 0) {
                if (err.message[0] == '\0')
                    abort();
                at = bytes->length;
                sum = sum * 31 + 7;
                break;
            }
            sum = sum * 31 + examine(taken, type, message);
            frame_free(type, message);
        }
    }
    bufferevent_free(ends[0]);
    bufferevent_free(ends[1]);
    (void)event_base_loop(base, EVLOOP_NONBLOCK); // libevent frees them there
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct event_base *base;
    struct buffer stream = { 0 };
    if (length < 2)
        return 0;
    if (base == NULL)
        base = event_base_new();
    if (bytes[1] == 'F')
        make_frames(&stream, bytes + 2, length - 2);
    else
        buffer_append(&stream, bytes + 1, length - 1);
    size_t piece = (size_t)bytes[0] + 1;
    if (stream.length > 0 && stream.length / piece < 4096 &&
        feed(base, &stream, stream.length) != feed(base, &stream, piece))
        abort();
    buffer_clear(&stream);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Messages of a newer side reach an older one: unknown fields and messages are skipped.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "unit_test.h"
#include "wire/frame.h"
#include "wire/message.h"

#define NEW_TAG     60000U
#define NEW_MESSAGE 60001U
#define HEAD        8U // of a field or an item
#define IDS         1000U

static uint32_t number_at(const uint8_t *bytes, size_t width)
{
    uint32_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

static void add_number(struct buffer *out, uint32_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        buffer_append(out, &byte, 1);
    }
}

/* Every text, and an item in every list, of every list. */
static void fill(const struct record_type *type, void *object)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        void *member = (char *)object + field->offset;
        if (field->kind == RECORD_STRING)
            *(char **)member = xstrdup("x");
        if (field->kind == RECORD_LIST) {
            void *item = xcalloc(1, field->sub->size);
            fill(field->sub, item);
            *(struct record_list *)member = (struct record_list){ item, 1 };
        }
    }
}

static void add_new_field(struct buffer *out)
{
    add_number(out, NEW_TAG, 2);
    add_number(out, 0, 2);
    add_number(out, 3, 4);
    buffer_append(out, "new", 3);
}

/* The same fields, with a new one before and behind them, in each item too. */
static void renew(const struct record_type *type, const uint8_t *bytes, size_t length, struct buffer *out)
{
    add_new_field(out);
    for (size_t at = 0; at < length;) {
        uint16_t tag = (uint16_t)number_at(bytes + at, 2);
        size_t n = number_at(bytes + at + 4, 4);
        const struct record_field *field = type->fields;
        while (field->tag != tag)
            field++;
        _cleanup_buffer_ struct buffer value = { 0 };
        if (field->kind == RECORD_LIST) {
            _cleanup_buffer_ struct buffer item = { 0 };
            renew(field->sub, bytes + at + 2 * HEAD, n - HEAD, &item);
            buffer_append(&value, bytes + at + HEAD, 4);
            add_number(&value, (uint32_t)item.length, 4);
            buffer_append(&value, item.bytes, item.length);
        } else if (n > 0) {
            buffer_append(&value, bytes + at + HEAD, n);
        }
        buffer_append(out, bytes + at, 4);
        add_number(out, (uint32_t)value.length, 4);
        if (value.length > 0)
            buffer_append(out, value.bytes, value.length);
        at += HEAD + n;
    }
    add_new_field(out);
}

static void add_frame(struct buffer *out, uint16_t id, const struct buffer *body)
{
    size_t begin = out->length;
    add_number(out, RECORD_MAGIC, 4);
    add_number(out, id, 2);
    add_number(out, 0, 2);
    add_number(out, (uint32_t)body->length, 4);
    buffer_append(out, body->bytes, body->length);
    add_number(out, crc32c(0, out->bytes + begin, out->length - begin), 4);
}

TEST(each_message_is_understood_with_fields_of_a_newer_version)
{
    size_t count = 0;
    for (uint16_t id = 0; id < IDS; id++) {
        const struct record_type *type = message_type(id);
        if (type == NULL)
            continue;
        count++;
        _cleanup_buffer_ struct buffer known = { 0 }, body = { 0 }, newer = { 0 }, again = { 0 };
        _cleanup_free_ void *object = xcalloc(1, type->size), *back = xcalloc(1, type->size);
        fill(type, object);
        record_encode(type, object, &known);
        renew(type, known.bytes + RECORD_HEADER_SIZE, known.length - RECORD_HEADER_SIZE - RECORD_CRC_SIZE,
            &body);
        add_frame(&newer, id, &body);
        struct error err = { 0 };
        int r = record_decode(type, newer.bytes, newer.length, back, &err);
        assert_string_equal(err.message, "");
        assert_int_equal(r, 0);
        record_encode(type, back, &again);
        assert_int_equal(again.length, known.length);
        assert_memory_equal(again.bytes, known.bytes, known.length);
        record_clear(type, object);
        record_clear(type, back);
    }
    assert_true(count > 20);
}

struct pair {
    struct event_base *base;
    struct bufferevent *ends[2];
};

static int open_pair(void **state)
{
    struct pair *pair = xcalloc(1, sizeof(*pair));
    pair->base = event_base_new();
    assert_int_equal(bufferevent_pair_new(pair->base, 0, pair->ends), 0);
    for (size_t i = 0; i < 2; i++)
        (void)bufferevent_enable(pair->ends[i], EV_READ | EV_WRITE);
    *state = pair;
    return 0;
}

static int close_pair(void **state)
{
    struct pair *pair = *state;
    bufferevent_free(pair->ends[0]);
    bufferevent_free(pair->ends[1]);
    event_base_free(pair->base);
    free(pair);
    return 0;
}

#define CASE(name, pair) TEST_ON(name, struct pair *pair, open_pair, close_pair)

static int take(struct pair *pair, const struct buffer *bytes, const struct record_type **ret_type)
{
    void *message = NULL;
    struct error err = { 0 };
    if (bytes->length > 0)
        assert_int_equal(bufferevent_write(pair->ends[0], bytes->bytes, bytes->length), 0);
    (void)event_base_loop(pair->base, EVLOOP_NONBLOCK);
    int r = frame_take(pair->ends[1], LINK_MESSAGE_MAX, ret_type, &message, &err);
    if (r > 0)
        frame_free(*ret_type, message);
    return r;
}

CASE(messages_of_a_newer_version_are_passed_over, pair)
{
    const struct record_type *type = NULL;
    const struct message_heartbeat beat = { .sent_ms = 7 };
    _cleanup_buffer_ struct buffer bytes = { 0 }, body = { 0 }, nothing = { 0 };
    add_new_field(&body);
    add_frame(&bytes, NEW_MESSAGE, &body);
    add_frame(&bytes, NEW_MESSAGE, &body);
    record_encode(&message_heartbeat_record, &beat, &bytes);
    add_frame(&bytes, NEW_MESSAGE, &body);
    assert_int_equal(take(pair, &bytes, &type), 1);
    assert_ptr_equal(type, &message_heartbeat_record);
    assert_int_equal(take(pair, &nothing, &type), 0);
}

CASE(a_message_of_a_newer_version_may_come_in_pieces, pair)
{
    const struct record_type *type = NULL;
    _cleanup_buffer_ struct buffer bytes = { 0 }, body = { 0 };
    add_new_field(&body);
    add_frame(&bytes, NEW_MESSAGE, &body);
    for (size_t i = 0; i < bytes.length; i++) {
        struct buffer one = { .bytes = bytes.bytes + i, .length = 1 };
        assert_int_equal(take(pair, &one, &type), 0);
    }
    assert_int_equal(evbuffer_get_length(bufferevent_get_input(pair->ends[1])), 0);
}

CASE(an_unknown_message_that_is_broken_is_refused, pair)
{
    const struct record_type *type = NULL;
    _cleanup_buffer_ struct buffer bytes = { 0 }, body = { 0 };
    add_new_field(&body);
    add_frame(&bytes, NEW_MESSAGE, &body);
    bytes.bytes[bytes.length - 1] ^= 1;
    assert_int_equal(take(pair, &bytes, &type), -EBADMSG);
}

/* Of one message too much was sent; what it is about is known all the same, and the link lives on. */
CASE(a_message_over_a_limit_is_taken_in_part_and_the_next_one_whole, pair)
{
    const struct record_type *type = NULL;
    void *message = NULL;
    struct error err = { 0 };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ char *text = xcalloc(1, EVENT_TEXT_MAX + 2);
    memset(text, 'x', EVENT_TEXT_MAX + 1);
    struct message_returned returned = { { 42, 1, 0, 3 }, 9, text };
    const struct message_heartbeat beat = { .sent_ms = 7 };
    record_encode(&message_returned_record, &returned, &bytes);
    record_encode(&message_heartbeat_record, &beat, &bytes);
    assert_int_equal(bufferevent_write(pair->ends[0], bytes.bytes, bytes.length), 0);
    (void)event_base_loop(pair->base, EVLOOP_NONBLOCK);
    assert_int_equal(frame_take(pair->ends[1], LINK_MESSAGE_MAX, &type, &message, &err), FRAME_PARTLY);
    assert_non_null(strstr(err.message, "field text has 1025 bytes; at most 1024"));
    const struct message_returned *got = message;
    assert_int_equal(got->id.job, 42);
    assert_int_equal(got->id.rank, 3);
    assert_int_equal(got->token, 9);
    assert_null(got->text);
    frame_free(type, message);
    assert_int_equal(frame_take(pair->ends[1], LINK_MESSAGE_MAX, &type, &message, &err), FRAME_WHOLE);
    assert_ptr_equal(type, &message_heartbeat_record);
    frame_free(type, message);
}

CASE(a_message_too_long_for_a_frame_goes_without_its_spare_fields, pair)
{
    struct error err = { 0 };
    struct job_spec spec = { .script = xcalloc(1, LINK_MESSAGE_MAX + 1U) };
    memset(spec.script, 'x', LINK_MESSAGE_MAX);
    struct message_launch launch = { .id.job = 42, .token = 9 };
    record_pack(&job_spec_record, &spec, &launch.spec);
    const struct record_type *type = NULL;
    void *message = NULL;
    assert_int_equal(frame_send(pair->ends[0], &message_launch_record, &launch, &err), 1);
    assert_non_null(strstr(err.message, "LAUNCH would have"));
    (void)event_base_loop(pair->base, EVLOOP_NONBLOCK);
    assert_int_equal(frame_take(pair->ends[1], LINK_MESSAGE_MAX, &type, &message, &err), FRAME_WHOLE);
    const struct message_launch *got = message;
    assert_int_equal(got->id.job, 42);
    assert_int_equal(got->token, 9);
    assert_int_equal(got->spec.length, 0); // the agent refuses it, and the job has failed to start
    frame_free(type, message);
    free(launch.spec.bytes);
    free(spec.script);
}

CASE(a_message_too_long_without_them_is_not_sent_and_the_next_one_is, pair)
{
    struct error err = { 0 };
    _cleanup_free_ char *text = xcalloc(1, LINK_MESSAGE_MAX + 1U);
    memset(text, 'x', LINK_MESSAGE_MAX);
    struct message_returned returned = { .id.job = 1, .text = text };
    const struct message_heartbeat beat = { .sent_ms = 7 };
    const struct record_type *type = NULL;
    void *message = NULL;
    assert_int_equal(frame_send(pair->ends[0], &message_returned_record, &returned, &err), -EMSGSIZE);
    assert_int_equal(frame_send(pair->ends[0], &message_heartbeat_record, &beat, &err), 0);
    (void)event_base_loop(pair->base, EVLOOP_NONBLOCK);
    assert_int_equal(frame_take(pair->ends[1], LINK_MESSAGE_MAX, &type, &message, &err), FRAME_WHOLE);
    assert_ptr_equal(type, &message_heartbeat_record);
    frame_free(type, message);
}

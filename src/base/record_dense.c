/* SPDX-License-Identifier: MIT */
/*
 * Both directions go through the binary form, whose decoder has the checks of limits and texts.
 */
#include "base/record_dense.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/record_bytes.h"

#define DIGIT_BITS 7U
#define MORE       0x80U

struct reader {
    const uint8_t *at, *end;
};

static void put_digits(struct buffer *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= MORE; value >>= DIGIT_BITS)
        bytes[n++] = (uint8_t)(value | MORE);
    bytes[n++] = (uint8_t)value;
    buffer_append(out, bytes, n);
}

static bool take_digits(struct reader *reader, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += DIGIT_BITS) {
        uint8_t digit = *reader->at++;
        value |= (uint64_t)(digit & (MORE - 1)) << shift;
        if ((digit & MORE) != 0)
            continue;
        *ret = value;
        return true;
    }
    return false;
}

/* A length and as many bytes, as a separate reader. */
static bool take_bytes(struct reader *reader, struct reader *ret)
{
    uint64_t length = 0;
    if (!take_digits(reader, &length) || length > (size_t)(reader->end - reader->at))
        return false;
    *ret = (struct reader){ reader->at, reader->at + length };
    reader->at += length;
    return true;
}

static void put_bytes(struct buffer *out, const void *bytes, size_t length)
{
    put_digits(out, length);
    buffer_append(out, bytes, length);
}

static bool is_number(const struct record_field *field)
{
    return field->kind < RECORD_STRING;
}

static void thin_fields(const struct record_type *type, const uint8_t *at, size_t length, struct buffer *out);

static void thin_list(const struct record_type *type, const uint8_t *at, size_t length, struct buffer *out)
{
    _cleanup_buffer_ struct buffer items = { 0 };
    for (size_t i = 0, n = 0; i < length; i += n) {
        _cleanup_buffer_ struct buffer fields = { 0 };
        n = RECORD_FIELD_HEADER_SIZE + (size_t)record_get_number(at + i + 4, 4);
        thin_fields(type, at + i + RECORD_FIELD_HEADER_SIZE, n - RECORD_FIELD_HEADER_SIZE, &fields);
        put_bytes(&items, fields.bytes, fields.length);
    }
    put_bytes(out, items.bytes, items.length);
}

/* From the binary form, which was just made from the type. */
static void thin_fields(const struct record_type *type, const uint8_t *at, size_t length, struct buffer *out)
{
    for (size_t i = 0, n = 0; i < length; i += n) {
        uint16_t tag = (uint16_t)record_get_number(at + i, 2);
        const struct record_field *field = record_find_field(type, tag);
        const uint8_t *value = at + i + RECORD_FIELD_HEADER_SIZE;
        size_t value_length = (size_t)record_get_number(at + i + 4, 4);
        n = RECORD_FIELD_HEADER_SIZE + value_length;
        put_digits(out, 2 * (uint64_t)tag + !is_number(field));
        if (is_number(field))
            put_digits(out, record_get_number(value, value_length));
        else if (field->kind == RECORD_LIST)
            thin_list(field->sub, value, value_length, out);
        else
            put_bytes(out, value, value_length);
    }
}

void record_encode_dense(const struct record_type *type, const void *object, struct buffer *out)
{
    _cleanup_buffer_ struct buffer binary = { 0 };
    size_t start = out->length;
    record_encode(type, object, &binary);
    record_put_number(out, RECORD_DENSE, 1);
    put_digits(out, type->id);
    thin_fields(
        type, binary.bytes + RECORD_HEADER_SIZE, binary.length - RECORD_HEADER_SIZE - RECORD_CRC_SIZE, out);
    record_put_number(out, crc32c(0, out->bytes + start, out->length - start), RECORD_CRC_SIZE);
}

static bool widen_fields(const struct record_type *type, struct reader reader, struct buffer *out);

static bool widen_list(const struct record_type *type, struct reader reader, struct buffer *out)
{
    while (reader.at < reader.end) {
        struct reader fields;
        if (!take_bytes(&reader, &fields))
            return false;
        size_t item = record_open_field(out, 0);
        if (!widen_fields(type, fields, out))
            return false;
        record_close_field(out, item);
    }
    return true;
}

/* A field of which nothing is known is left out. */
static bool widen_field(
    const struct record_type *type, uint64_t key, struct reader *reader, struct buffer *out)
{
    const struct record_field *field =
        key / 2 <= UINT16_MAX ? record_find_field(type, (uint16_t)(key / 2)) : NULL;
    bool is_bytes = key % 2 != 0;
    struct reader value = { 0 };
    uint64_t number = 0;
    if (!(is_bytes ? take_bytes(reader, &value) : take_digits(reader, &number)))
        return false;
    if (field == NULL)
        return true;
    if (is_number(field) == is_bytes)
        return false;
    size_t start = record_open_field(out, field->tag);
    if (!is_bytes)
        record_put_number(out, number, record_number_width(field->kind));
    else if (field->kind != RECORD_LIST)
        buffer_append(out, value.at, (size_t)(value.end - value.at));
    else if (!widen_list(field->sub, value, out))
        return false;
    record_close_field(out, start);
    return true;
}

static bool widen_fields(const struct record_type *type, struct reader reader, struct buffer *out)
{
    while (reader.at < reader.end) {
        uint64_t key = 0;
        if (!take_digits(&reader, &key) || !widen_field(type, key, &reader, out))
            return false;
    }
    return true;
}

int record_dense_to_binary(
    const struct record_type *type, const void *bytes, size_t length, struct buffer *out, struct error *err)
{
    const uint8_t *p = bytes;
    uint64_t id = 0;
    if (length < 1 + RECORD_CRC_SIZE || length > RECORD_BODY_MAX || p[0] != RECORD_DENSE)
        return error_set(err, -EBADMSG, "%zu bytes are not a complete %s record", length, type->name);
    struct reader reader = { p + 1, p + length - RECORD_CRC_SIZE };
    if (crc32c(0, p, length - RECORD_CRC_SIZE) != record_get_number(reader.end, RECORD_CRC_SIZE))
        return error_set(err, -EBADMSG, "%s record has a wrong checksum", type->name);
    if (!take_digits(&reader, &id) || id != type->id)
        return error_set(
            err, -EBADMSG, "record type %" PRIu64 " instead of %s (%u)", id, type->name, type->id);
    size_t start = out->length;
    record_put_number(out, RECORD_MAGIC, 4);
    record_put_number(out, id, 4);
    record_put_number(out, 0, 4);
    size_t body = out->length;
    if (!widen_fields(type, reader, out))
        return error_set(err, -EBADMSG, "%s record is truncated", type->name);
    record_close_field(out, body);
    record_put_number(out, crc32c(0, out->bytes + start, out->length - start), RECORD_CRC_SIZE);
    return 0;
}

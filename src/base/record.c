/* SPDX-License-Identifier: MIT */
/* One loop over a field table for each direction; every length is checked before anything is allocated. */
#include "base/record.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/record_bytes.h"
#include "base/record_dense.h"
#include "base/record_equal.h"

static uint64_t load_number(enum record_kind kind, const void *member)
{
    switch (kind) {
    case RECORD_BOOL: return *(const bool *)member;
    case RECORD_U32:
    case RECORD_MILLI: return *(const uint32_t *)member;
    case RECORD_I32: return (uint32_t) * (const int32_t *)member;
    case RECORD_I64:
    case RECORD_DURATION:
    case RECORD_TIME: return (uint64_t) * (const int64_t *)member;
    default: return *(const uint64_t *)member;
    }
}

static void store_number(enum record_kind kind, void *member, uint64_t value)
{
    switch (kind) {
    case RECORD_BOOL: *(bool *)member = value != 0; break;
    case RECORD_U32:
    case RECORD_MILLI: *(uint32_t *)member = (uint32_t)value; break;
    case RECORD_I32: *(int32_t *)member = (int32_t)(uint32_t)value; break;
    case RECORD_I64:
    case RECORD_DURATION:
    case RECORD_TIME: *(int64_t *)member = (int64_t)value; break;
    default: *(uint64_t *)member = value; break;
    }
}

enum encoding { ENCODE_WHOLE, ENCODE_BARE };

static void encode_body(
    const struct record_type *type, enum encoding encoding, const void *object, struct buffer *out);

static void encode_field(
    const struct record_field *field, enum encoding encoding, const void *member, struct buffer *out)
{
    size_t start;
    switch (field->kind) {
    case RECORD_STRING: {
        const char *text = *(char *const *)member;
        if (text == NULL)
            return;
        start = record_open_field(out, field->tag);
        buffer_append_text(out, text);
        record_close_field(out, start);
        return;
    }
    case RECORD_STRINGS:
    case RECORD_ENV: {
        const struct strings *strings = member;
        if (strings->count == 0)
            return;
        start = record_open_field(out, field->tag);
        for (size_t i = 0; i < strings->count; i++)
            buffer_append(out, strings->items[i], strlen(strings->items[i]) + 1);
        record_close_field(out, start);
        return;
    }
    case RECORD_LIST: {
        const struct record_list *list = member;
        if (list->count == 0)
            return;
        start = record_open_field(out, field->tag);
        for (size_t i = 0; i < list->count; i++) {
            size_t item = record_open_field(out, 0);
            encode_body(field->sub, encoding, (const char *)list->items + i * field->sub->size, out);
            record_close_field(out, item);
        }
        record_close_field(out, start);
        return;
    }
    case RECORD_PACKED: {
        const struct record_bytes *packed = member;
        if (packed->length == 0)
            return;
        start = record_open_field(out, field->tag);
        size_t item = record_open_field(out, 0);
        buffer_append(out, packed->bytes, packed->length);
        record_close_field(out, item);
        record_close_field(out, start);
        return;
    }
    default: {
        uint64_t value = load_number(field->kind, member);
        if (value == 0)
            return;
        start = record_open_field(out, field->tag);
        record_put_number(out, value, record_number_width(field->kind));
        record_close_field(out, start);
        return;
    }
    }
}

static void encode_body(
    const struct record_type *type, enum encoding encoding, const void *object, struct buffer *out)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (encoding == ENCODE_WHOLE || !type->fields[i].is_spare)
            encode_field(&type->fields[i], encoding, (const char *)object + type->fields[i].offset, out);
}

static void encode(
    const struct record_type *type, enum encoding encoding, const void *object, struct buffer *out)
{
    size_t start = out->length;
    record_put_number(out, RECORD_MAGIC, 4);
    record_put_number(out, type->id, 2);
    record_put_number(out, 0, 2);
    record_put_number(out, 0, 4);
    size_t body = out->length;
    encode_body(type, encoding, object, out);
    record_set_number(out, body - 4, (uint32_t)(out->length - body));
    record_put_number(out, crc32c(0, out->bytes + start, out->length - start), 4);
}

void record_encode(const struct record_type *type, const void *object, struct buffer *out)
{
    encode(type, ENCODE_WHOLE, object, out);
}

void record_encode_bare(const struct record_type *type, const void *object, struct buffer *out)
{
    encode(type, ENCODE_BARE, object, out);
}

void record_cut(struct buffer *record, uint16_t tag)
{
    size_t to = RECORD_HEADER_SIZE, end = record->length - RECORD_CRC_SIZE;
    for (size_t at = to, n = 0; at < end; at += n) {
        n = RECORD_FIELD_HEADER_SIZE + (size_t)record_get_number(record->bytes + at + 4, 4);
        if ((uint16_t)record_get_number(record->bytes + at, 2) == tag)
            continue;
        if (to != at)
            memmove(record->bytes + to, record->bytes + at, n);
        to += n;
    }
    record->length = to;
    record_set_number(record, RECORD_HEADER_SIZE - 4, (uint32_t)(to - RECORD_HEADER_SIZE));
    record_put_number(record, crc32c(0, record->bytes, to), 4);
}

void record_pack(const struct record_type *type, const void *object, struct record_bytes *ret)
{
    struct buffer fields = { 0 };
    encode_body(type, ENCODE_WHOLE, object, &fields);
    *ret = (struct record_bytes){ fields.bytes, fields.length };
}

void record_repack(
    const void *record, const struct record_type *part, const void *object, struct record_bytes *ret)
{
    struct buffer fields = { 0 };
    const uint8_t *p = (const uint8_t *)record + RECORD_HEADER_SIZE;
    const uint8_t *end = p + record_get_number(p - 4, 4);
    for (size_t n = 0; p < end; p += n) {
        n = RECORD_FIELD_HEADER_SIZE + (size_t)record_get_number(p + 4, 4);
        if (record_find_field(part, (uint16_t)record_get_number(p, 2)) == NULL)
            buffer_append(&fields, p, n);
    }
    encode_body(part, ENCODE_WHOLE, object, &fields);
    *ret = (struct record_bytes){ fields.bytes, fields.length };
}

int record_peek(const void *bytes, size_t available, size_t max_length, uint16_t *ret_id, size_t *ret_length)
{
    const uint8_t *p = bytes;
    if (available < RECORD_HEADER_SIZE) {
        *ret_length = 0;
        return 0;
    }
    uint64_t body = record_get_number(p + 8, 4);
    uint64_t length = RECORD_HEADER_SIZE + body + RECORD_CRC_SIZE;
    if (record_get_number(p, 4) != RECORD_MAGIC || body > RECORD_BODY_MAX || length > max_length)
        return -EBADMSG;
    *ret_id = (uint16_t)record_get_number(p + 4, 2);
    *ret_length = (size_t)length;
    return 0;
}

/* The effect of an invalid field on its record. */
enum taking { TAKE_ALL, TAKE_PARTLY };

static int decode_body(const struct record_type *type, enum taking taking, const uint8_t *bytes,
    size_t length, void *object, struct error *err);

static int decode_strings(const struct record_field *field, const uint8_t *bytes, size_t length,
    struct strings *strings, struct error *err)
{
    if (length > 0 && bytes[length - 1] != '\0')
        return error_set(err, -EBADMSG, "field %s is not terminated", field->name);
    for (size_t at = 0; at < length;) {
        size_t n = strlen((const char *)bytes + at);
        strings_take(strings, xstrndup((const char *)bytes + at, n));
        at += n + 1;
    }
    return 0;
}

static int decode_list(const struct record_field *field, const uint8_t *bytes, size_t length,
    struct record_list *list, struct error *err)
{
    for (size_t at = 0; at < length;) {
        if (length - at < RECORD_FIELD_HEADER_SIZE)
            return error_set(err, -EBADMSG, "field %s is truncated", field->name);
        size_t n = (size_t)record_get_number(bytes + at + 4, 4);
        at += RECORD_FIELD_HEADER_SIZE;
        if (n > length - at || list->count >= field->limit)
            return error_set(err, -EBADMSG, "field %s exceeds its limit", field->name);
        size_t size = field->sub->size;
        if ((list->count & (list->count - 1)) == 0) // it doubles at powers of two
            list->items = xreallocarray(list->items, list->count == 0 ? 1 : 2 * list->count, size);
        void *item = (char *)list->items + list->count * size;
        memset(item, 0, size);
        list->count++;
        int r = decode_body(field->sub, TAKE_ALL, bytes + at, n, item, err);
        if (r < 0)
            return r;
        at += n;
    }
    return 0;
}

static int decode_packed(const struct record_field *field, const uint8_t *bytes, size_t length,
    struct record_bytes *packed, struct error *err)
{
    if (length < RECORD_FIELD_HEADER_SIZE ||
        record_get_number(bytes + 4, 4) != length - RECORD_FIELD_HEADER_SIZE)
        return error_set(err, -EBADMSG, "field %s is not one record", field->name);
    struct buffer copy = { 0 };
    buffer_append(&copy, bytes + RECORD_FIELD_HEADER_SIZE, length - RECORD_FIELD_HEADER_SIZE);
    free(packed->bytes);
    *packed = (struct record_bytes){ copy.bytes, copy.length };
    return 0;
}

static int decode_field(
    const struct record_field *field, const uint8_t *bytes, size_t length, void *member, struct error *err)
{
    bool is_text = field->kind == RECORD_STRING || field->kind == RECORD_STRINGS || field->kind == RECORD_ENV;
    if (is_text && length > field->limit)
        return error_set(
            err, -EBADMSG, "field %s has %zu bytes; at most %u", field->name, length, field->limit);
    switch (field->kind) {
    case RECORD_STRING:
        if (memchr(bytes, '\0', length) != NULL)
            return error_set(err, -EBADMSG, "field %s contains a NUL byte", field->name);
        free(*(char **)member);
        *(char **)member = xstrndup((const char *)bytes, length);
        return 0;
    case RECORD_STRINGS:
    case RECORD_ENV: return decode_strings(field, bytes, length, member, err);
    case RECORD_LIST: return decode_list(field, bytes, length, member, err);
    case RECORD_PACKED: return decode_packed(field, bytes, length, member, err);
    default:
        if (length != record_number_width(field->kind))
            return error_set(err, -EBADMSG, "field %s has %zu bytes", field->name, length);
        store_number(field->kind, member, record_get_number(bytes, length));
        return 0;
    }
}

static bool owns_memory(enum record_kind kind)
{
    return kind >= RECORD_STRING;
}

/* Frees what a field owns and leaves it as if it had not been sent. */
static void clear_field(const struct record_field *field, void *member)
{
    switch (field->kind) {
    case RECORD_STRING:
        free(*(char **)member);
        *(char **)member = NULL;
        return;
    case RECORD_STRINGS:
    case RECORD_ENV: strings_clear(member); return;
    case RECORD_LIST: {
        struct record_list *list = member;
        for (size_t i = 0; i < list->count; i++)
            record_clear(field->sub, (char *)list->items + i * field->sub->size);
        free(list->items);
        *list = (struct record_list){ 0 };
        return;
    }
    case RECORD_PACKED:
        free(((struct record_bytes *)member)->bytes);
        *(struct record_bytes *)member = (struct record_bytes){ 0 };
        return;
    default: store_number(field->kind, member, 0); return;
    }
}

/* 1 if fields were left out: `err` then describes the first. */
static int decode_body(const struct record_type *type, enum taking taking, const uint8_t *bytes,
    size_t length, void *object, struct error *err)
{
    int result = 0;
    for (size_t at = 0; at < length;) {
        if (length - at < RECORD_FIELD_HEADER_SIZE)
            return error_set(err, -EBADMSG, "%s record is truncated", type->name);
        uint16_t tag = (uint16_t)record_get_number(bytes + at, 2);
        size_t n = (size_t)record_get_number(bytes + at + 4, 4);
        at += RECORD_FIELD_HEADER_SIZE;
        if (n > length - at)
            return error_set(err, -EBADMSG, "%s record is truncated", type->name);
        const struct record_field *field = record_find_field(type, tag);
        void *member = field != NULL ? (char *)object + field->offset : NULL;
        int r = field != NULL
                    ? decode_field(field, bytes + at, n, member, result == 0 ? err : &(struct error){ 0 })
                    : 0;
        if (r < 0 && taking == TAKE_ALL)
            return r;
        if (r < 0) {
            clear_field(field, member);
            result = 1;
        }
        at += n;
    }
    return result;
}

static int decode_binary(const struct record_type *type, enum taking taking, const void *bytes, size_t length,
    void *object, struct error *err)
{
    memset(object, 0, type->size);
    uint16_t id = 0;
    size_t whole = 0;
    if (record_peek(bytes, length, SIZE_MAX, &id, &whole) < 0 || whole != length)
        return error_set(err, -EBADMSG, "%zu bytes are not a complete %s record", length, type->name);
    if (id != type->id)
        return error_set(err, -EBADMSG, "record type %u instead of %s (%u)", id, type->name, type->id);
    const uint8_t *p = bytes;
    size_t covered = length - RECORD_CRC_SIZE;
    if (crc32c(0, p, covered) != record_get_number(p + covered, 4))
        return error_set(err, -EBADMSG, "%s record has a wrong checksum", type->name);
    int r = decode_body(type, taking, p + RECORD_HEADER_SIZE, covered - RECORD_HEADER_SIZE, object, err);
    if (r < 0)
        record_clear(type, object);
    return r;
}

static int decode(const struct record_type *type, enum taking taking, const void *bytes, size_t length,
    void *object, struct error *err)
{
    _cleanup_buffer_ struct buffer binary = { 0 };
    if (length == 0 || *(const uint8_t *)bytes != RECORD_DENSE)
        return decode_binary(type, taking, bytes, length, object, err);
    memset(object, 0, type->size);
    int r = record_dense_to_binary(type, bytes, length, &binary, err);
    return r < 0 ? r : decode_binary(type, taking, binary.bytes, binary.length, object, err);
}

int record_decode(
    const struct record_type *type, const void *bytes, size_t length, void *object, struct error *err)
{
    return decode(type, TAKE_ALL, bytes, length, object, err);
}

int record_decode_partly(
    const struct record_type *type, const void *bytes, size_t length, void *object, struct error *err)
{
    return decode(type, TAKE_PARTLY, bytes, length, object, err);
}

int record_unpack(
    const struct record_type *type, const struct record_bytes *packed, void *object, struct error *err)
{
    memset(object, 0, type->size);
    int r = decode_body(type, TAKE_ALL, packed->bytes, packed->length, object, err);
    if (r < 0)
        record_clear(type, object);
    return r;
}

void record_clear(const struct record_type *type, void *object)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (owns_memory(type->fields[i].kind))
            clear_field(&type->fields[i], (char *)object + type->fields[i].offset);
    memset(object, 0, type->size);
}

void record_copy(const struct record_type *type, void *to, const void *from)
{
    memcpy(to, from, type->size);
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        void *member = (char *)to + field->offset;
        const void *source = (const char *)from + field->offset;
        if (!owns_memory(field->kind))
            continue;
        if (field->kind == RECORD_STRING) {
            *(char **)member = xstrdup(*(char *const *)source);
        } else if (field->kind == RECORD_STRINGS || field->kind == RECORD_ENV) {
            memset(member, 0, sizeof(struct strings));
            strings_copy(member, source);
        } else if (field->kind == RECORD_LIST) {
            const struct record_list *list = source;
            struct record_list *copy = member;
            copy->items = list->count > 0 ? xcalloc(list->count, field->sub->size) : NULL;
            for (size_t k = 0; k < list->count; k++)
                record_copy(field->sub, (char *)copy->items + k * field->sub->size,
                    (const char *)list->items + k * field->sub->size);
        } else if (field->kind == RECORD_PACKED) {
            const struct record_bytes *packed = source;
            struct buffer copy = { 0 };
            if (packed->length > 0)
                buffer_append(&copy, packed->bytes, packed->length);
            *(struct record_bytes *)member = (struct record_bytes){ copy.bytes, copy.length };
        }
    }
}

static bool equal_strings(const struct strings *a, const struct strings *b)
{
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++)
        is_equal = strcmp(a->items[i], b->items[i]) == 0;
    return is_equal;
}

static bool equal_lists(
    const struct record_type *type, const struct record_list *a, const struct record_list *b)
{
    bool is_equal = a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++)
        is_equal = record_equal(
            type, (const char *)a->items + i * type->size, (const char *)b->items + i * type->size);
    return is_equal;
}

static bool equal_packed(const struct record_bytes *a, const struct record_bytes *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static bool equal_texts(const char *a, const char *b)
{
    return a == b || text_equal(a, b);
}

static bool equal_fields(const struct record_field *field, const void *a, const void *b)
{
    switch (field->kind) {
    case RECORD_STRING: return equal_texts(*(char *const *)a, *(char *const *)b);
    case RECORD_STRINGS:
    case RECORD_ENV: return equal_strings(a, b);
    case RECORD_LIST: return equal_lists(field->sub, a, b);
    case RECORD_PACKED: return equal_packed(a, b);
    default: return load_number(field->kind, a) == load_number(field->kind, b);
    }
}

bool record_equal(const struct record_type *type, const void *a, const void *b)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        size_t at = type->fields[i].offset;
        if (!equal_fields(&type->fields[i], (const char *)a + at, (const char *)b + at))
            return false;
    }
    return true;
}

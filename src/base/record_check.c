/* SPDX-License-Identifier: MIT */
/* Checks the limits of decoding before encoding. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/record.h"

#define ITEM_HEADER_SIZE 8U

static int check_body(
    const struct record_type *type, const void *object, uint64_t *length, struct error *err);

static int check_text(const struct record_field *field, size_t length, struct error *err)
{
    if (length > field->limit)
        return error_set(
            err, -EBADMSG, "field %s has %zu bytes; at most %u", field->name, length, field->limit);
    return 0;
}

static int check_list(
    const struct record_field *field, const struct record_list *list, uint64_t *length, struct error *err)
{
    if (list->count > field->limit)
        return error_set(err, -EBADMSG, "field %s is over its limit", field->name);
    for (size_t i = 0; i < list->count; i++) {
        int r = check_body(field->sub, (const char *)list->items + i * field->sub->size, length, err);
        if (r < 0)
            return r;
        *length += ITEM_HEADER_SIZE;
    }
    return 0;
}

static size_t number_width(enum record_kind kind)
{
    switch (kind) {
    case RECORD_BOOL: return sizeof(bool);
    case RECORD_U32:
    case RECORD_MILLI:
    case RECORD_I32: return 4;
    default: return 8;
    }
}

/* Adds the encoded size of the field to *length. */
static int check_field(
    const struct record_field *field, const void *member, uint64_t *length, struct error *err)
{
    size_t n = 0;
    switch (field->kind) {
    case RECORD_STRING:
        if (*(char *const *)member == NULL)
            return 0;
        n = strlen(*(char *const *)member);
        break;
    case RECORD_STRINGS:
    case RECORD_ENV: {
        const struct strings *strings = member;
        if (strings->count == 0)
            return 0;
        for (size_t i = 0; i < strings->count; i++)
            n += strlen(strings->items[i]) + 1;
        break;
    }
    case RECORD_LIST:
        if (((const struct record_list *)member)->count > 0)
            *length += ITEM_HEADER_SIZE;
        return check_list(field, member, length, err);
    case RECORD_PACKED:
        if (((const struct record_bytes *)member)->length > 0)
            *length += 2 * ITEM_HEADER_SIZE + ((const struct record_bytes *)member)->length;
        return 0;
    default:
        if (memcmp(member, &(uint64_t){ 0 }, number_width(field->kind)) != 0)
            *length += ITEM_HEADER_SIZE + number_width(field->kind);
        return 0;
    }
    *length += ITEM_HEADER_SIZE + n;
    return check_text(field, n, err);
}

static int check_body(const struct record_type *type, const void *object, uint64_t *length, struct error *err)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        int r = check_field(field, (const char *)object + field->offset, length, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int record_check(const struct record_type *type, const void *object, struct error *err)
{
    uint64_t length = 0;
    int r = check_body(type, object, &length, err);
    if (r == 0 && length > RECORD_BODY_MAX)
        return error_set(err, -EBADMSG, "a %s record of %llu bytes is too long; at most %u", type->name,
            (unsigned long long)length, RECORD_BODY_MAX);
    return r;
}

/* The tag of the largest field of an encoded record. */
static uint16_t longest_field(const struct buffer *record)
{
    uint16_t tag = 0;
    size_t longest = 0;
    for (size_t at = RECORD_HEADER_SIZE; at < record->length - RECORD_CRC_SIZE;) {
        const uint8_t *field = record->bytes + at;
        size_t n = ITEM_HEADER_SIZE;
        for (size_t i = 0; i < 4; i++)
            n += (size_t)field[4 + i] << (8 * i);
        if (n > longest) {
            longest = n;
            tag = (uint16_t)(field[0] | field[1] << 8);
        }
        at += n;
    }
    return tag;
}

void record_copy_readable(const struct record_type *type, void *to, const void *from)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, from, &bytes);
    while (bytes.length > RECORD_HEADER_SIZE + RECORD_BODY_MAX + RECORD_CRC_SIZE)
        record_cut(&bytes, longest_field(&bytes));
    (void)record_decode_partly(type, bytes.bytes, bytes.length, to, &(struct error){ 0 });
}

int record_encode_readable(
    const struct record_type *type, const void *object, struct buffer *out, struct error *err)
{
    if (record_check(type, object, err) == 0) {
        record_encode(type, object, out);
        return 0;
    }
    _cleanup_free_ void *left = xcalloc(1, type->size);
    record_copy_readable(type, left, object);
    record_encode(type, left, out);
    record_clear(type, left);
    return 1;
}

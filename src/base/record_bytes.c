/* SPDX-License-Identifier: MIT */
/* Numbers are little-endian on every machine. */
#include "base/record_bytes.h"

void record_put_number(struct buffer *out, uint64_t value, size_t width)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    buffer_append(out, bytes, width);
}

uint64_t record_get_number(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void record_set_number(struct buffer *out, size_t at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        out->bytes[at + i] = (uint8_t)(value >> (8 * i));
}

size_t record_number_width(enum record_kind kind)
{
    switch (kind) {
    case RECORD_BOOL: return 1;
    case RECORD_U32:
    case RECORD_MILLI:
    case RECORD_I32: return 4;
    default: return 8;
    }
}

const struct record_field *record_find_field(const struct record_type *type, uint16_t tag)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (type->fields[i].tag == tag)
            return &type->fields[i];
    return NULL;
}

size_t record_open_field(struct buffer *out, uint16_t tag)
{
    record_put_number(out, tag, RECORD_FIELD_HEADER_SIZE);
    return out->length;
}

void record_close_field(struct buffer *out, size_t start)
{
    record_set_number(out, start - 4, (uint32_t)(out->length - start));
}

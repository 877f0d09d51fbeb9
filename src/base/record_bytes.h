/* SPDX-License-Identifier: MIT */
/* What the two binary forms of records are made of (record.c, record_dense.c): numbers and headers of fields.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/record.h"

#define RECORD_FIELD_HEADER_SIZE 8U

/* Appends the lowest `width` bytes of the number, little-endian. */
void record_put_number(struct buffer *out, uint64_t value, size_t width);

/* The number in `width` bytes, at most 8. */
uint64_t record_get_number(const uint8_t *bytes, size_t width);

/* Overwrites the four bytes at this position. */
void record_set_number(struct buffer *out, size_t at, uint32_t value);

/* Bytes of a number of this kind in a field; not for kinds that own memory. */
size_t record_number_width(enum record_kind kind);

/* The field with this tag; NULL: the type has none. */
const struct record_field *record_find_field(const struct record_type *type, uint16_t tag);

/* Appends the header of a field, whose length record_close_field() fills in. Returns where the value begins.
 */
size_t record_open_field(struct buffer *out, uint16_t tag);
void record_close_field(struct buffer *out, size_t start);

/* SPDX-License-Identifier: MIT */
/*
 * Records in fewer bytes, for the store: a field needs two bytes instead of eight beside its value, and a
 * number as many as it has digits of seven bits.
 *
 * Dense form: u8 RECORD_DENSE, type id, fields, u32 CRC-32C of everything before it. The key of a field is
 * twice its tag, plus 1 if its value is bytes; then the number, or the length and the bytes. The value of a
 * list is, for each item, its length and its fields. Numbers whose width is not given here are little-endian
 * in groups of seven bits, of which all but the last have the eighth bit set.
 */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

#define RECORD_DENSE 0xd1U // never the first byte of the binary form

/* Appends the record in dense form. record_decode() reads both forms. */
void record_encode_dense(const struct record_type *type, const void *object, struct buffer *out);

/* Appends the binary form of the bytes of a record in dense form. -EBADMSG: they are none of this type. */
int record_dense_to_binary(
    const struct record_type *type, const void *bytes, size_t length, struct buffer *out, struct error *err);

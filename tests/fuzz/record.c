/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the body of a record of every type there is: refused, or read, written and read again alike.
 * The header and the checksum are put around the bytes here, because no fuzzer finds a CRC.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "base/record.h"
#include "base/record_dense.h"
#include "fuzz.h"
#include "record_tables.h"

static void put(struct buffer *out, uint32_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        buffer_append(out, &(uint8_t){ (uint8_t)(value >> (8 * i)) }, 1);
}

static void append_crc(struct buffer *record)
{
    put(record, crc32c(0, record->bytes, record->length), 4);
}

/* What is read from it must be read again, alike, from both forms. */
static void try_record(const struct record_type *type, const struct buffer *record)
{
    static void (*const forms[])(const struct record_type *, const void *, struct buffer *) = {
        record_encode,
        record_encode_dense,
    };
    _cleanup_free_ void *object = xcalloc(1, type->size), *copy = xcalloc(1, type->size);
    struct error err = { 0 };
    if (record_decode(type, record->bytes, record->length, object, &err) < 0)
        return;
    if (record_check(type, object, &err) < 0)
        abort();
    record_copy(type, copy, object);
    record_clear(type, object);
    for (size_t i = 0; i < 2; i++) {
        _cleanup_buffer_ struct buffer first = { 0 }, again = { 0 };
        forms[i](type, copy, &first);
        if (record_decode(type, first.bytes, first.length, object, &err) < 0)
            abort();
        forms[i](type, object, &again);
        record_clear(type, object);
        if (again.length != first.length || memcmp(again.bytes, first.bytes, first.length) != 0)
            abort();
    }
    record_clear(type, copy);
}

static void try_type(const struct record_type *type, const uint8_t *bytes, size_t length)
{
    _cleanup_buffer_ struct buffer binary = { 0 }, dense = { 0 };
    put(&binary, RECORD_MAGIC, 4);
    put(&binary, type->id, 2);
    put(&binary, 0, 2);
    put(&binary, (uint32_t)length, 4);
    buffer_append(&binary, bytes, length);
    append_crc(&binary);
    try_record(type, &binary);
    put(&dense, RECORD_DENSE, 1);
    for (unsigned id = type->id; id != 0; id >>= 7)
        put(&dense, (id & 0x7f) | (id >= 0x80 ? 0x80 : 0), 1);
    buffer_append(&dense, bytes, length);
    append_crc(&dense);
    try_record(type, &dense);
}

/* The first two bytes are the id of the type. Several have the same one where they never meet. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 2 || length - 2 > RECORD_BODY_MAX)
        return 0;
    for (size_t i = 0; i < record_tables_count; i++)
        if (record_tables[i]->id == (bytes[0] | bytes[1] << 8))
            try_type(record_tables[i], bytes + 2, length - 2);
    return 0;
}

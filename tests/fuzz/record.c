/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the body of a record of every type there is: refused, or read, written and read again alike.
 * The header and the checksum are put around the bytes here, because no fuzzer finds a CRC.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/record.h"
#include "job/cluster_change.h"
#include "job/job_nodes.h"
#include "job/launch.h"
#include "job/spec.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void put(struct buffer *out, uint32_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        buffer_append(out, &(uint8_t){ (uint8_t)(value >> (8 * i)) }, 1);
}

static void try_type(const struct record_type *type, const uint8_t *bytes, size_t length)
{
    struct buffer record = { 0 }, again = { 0 };
    put(&record, RECORD_MAGIC, 4);
    put(&record, type->id, 2);
    put(&record, 0, 2);
    put(&record, (uint32_t)length, 4);
    buffer_append(&record, bytes, length);
    put(&record, crc32c(0, record.bytes, record.length), 4);
    void *object = xcalloc(1, type->size), *copy = xcalloc(1, type->size);
    struct error err = { 0 };
    if (record_decode(type, record.bytes, record.length, object, &err) == 0) {
        if (record_check(type, object, &err) < 0)
            abort();
        record_copy(type, copy, object);
        record_encode(type, copy, &again);
        record_clear(type, copy);
        if (record_decode(type, again.bytes, again.length, copy, &err) < 0)
            abort();
        record_clear(type, copy);
        record_clear(type, object);
    }
    free(object);
    free(copy);
    buffer_clear(&record);
    buffer_clear(&again);
}

static const struct record_type *find_type(uint8_t number)
{
    static const struct record_type *const others[] = { &job_spec_record, &job_event_record, &job_ask_record,
        &job_usage_record, &job_nodes_record, &cluster_change_record, &launch_spec_record,
        &launch_exit_record, &launch_started_record };
    size_t count = sizeof(others) / sizeof(others[0]);
    return number < count ? others[number] : message_type((uint16_t)(MESSAGE_HELLO + number - count));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const struct record_type *type = length > 0 ? find_type(bytes[0]) : NULL;
    if (type != NULL && length <= RECORD_BODY_MAX)
        try_type(type, bytes + 1, length - 1);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/memory.h"
#include "base/record.h"

static void put(struct buffer *out, uint32_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        buffer_append(out, &(uint8_t){ (uint8_t)(value >> (8 * i)) }, 1);
}

bool message_is_about_attempt(uint16_t type)
{
    static const uint16_t types[] = { MESSAGE_LAUNCH, MESSAGE_STOP, MESSAGE_RELEASE_ATTEMPT, MESSAGE_STARTED,
        MESSAGE_EXITED, MESSAGE_RETURNED, MESSAGE_READY, MESSAGE_GO, MESSAGE_PREPARE };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i] == type)
            return true;
    return false;
}

void *message_take(struct input *input, const struct record_type **ret_type)
{
    size_t length = 0;
    const struct record_type *type = message_type((uint16_t)(MESSAGE_HELLO + input_byte(input)));
    size_t wanted = input_number(input);
    const uint8_t *body = input_run(input, wanted, &length);
    if (type == NULL)
        return NULL;
    _cleanup_buffer_ struct buffer record = { 0 };
    put(&record, RECORD_MAGIC, 4);
    put(&record, type->id, 2);
    put(&record, 0, 2);
    put(&record, (uint32_t)length, 4);
    buffer_append(&record, body, length);
    put(&record, crc32c(0, record.bytes, record.length), 4);
    struct error err;
    void *message = xcalloc(1, type->size);
    if (record_decode(type, record.bytes, record.length, message, &err) < 0) {
        free(message);
        return NULL;
    }
    *ret_type = type;
    return message;
}

void message_free(const struct record_type *type, void *message)
{
    record_clear(type, message);
    free(message);
}

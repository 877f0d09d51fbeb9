/* SPDX-License-Identifier: MIT */
#include "base/terminal.h"

#define LENGTH_SIZE 3U

void terminal_put(uint8_t *bytes, size_t size, uint64_t value)
{
    for (size_t i = size; i > 0; i--) {
        bytes[i - 1] = (uint8_t)value;
        value >>= 8;
    }
}

uint64_t terminal_get(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

void terminal_head(uint8_t head[TERMINAL_HEAD_SIZE], enum terminal_frame type, size_t length)
{
    head[0] = (uint8_t)type;
    terminal_put(head + 1, LENGTH_SIZE, length);
}

bool terminal_read_head(const uint8_t head[TERMINAL_HEAD_SIZE], uint8_t *ret_type, size_t *ret_length)
{
    size_t length = (size_t)terminal_get(head + 1, LENGTH_SIZE);
    if (length > TERMINAL_PAYLOAD_MAX)
        return false;
    *ret_type = head[0];
    *ret_length = length;
    return true;
}

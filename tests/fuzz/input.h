/* SPDX-License-Identifier: MIT */
/* An input as a sequence of small numbers and runs of bytes; what is missing at the end is zero. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *bytes;
    size_t length, at;
};

static inline uint8_t input_byte(struct input *input)
{
    return input->at < input->length ? input->bytes[input->at++] : 0;
}

static inline uint16_t input_number(struct input *input)
{
    uint8_t low = input_byte(input);
    return (uint16_t)(low | input_byte(input) << 8);
}

/* At most `wanted` bytes; *ret_length says how many there are. */
static inline const uint8_t *input_run(struct input *input, size_t wanted, size_t *ret_length)
{
    const uint8_t *run = input->bytes + input->at;
    size_t left = input->length - input->at;
    *ret_length = wanted < left ? wanted : left;
    input->at += *ret_length;
    return run;
}

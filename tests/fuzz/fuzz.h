/* SPDX-License-Identifier: MIT */
/* What each target has: the function that libFuzzer or replay.c calls, and how it fails. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static inline void must_be(bool is_true)
{
    if (!is_true)
        abort();
}

static inline bool is_printable(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

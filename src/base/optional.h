/* SPDX-License-Identifier: MIT */
/*
 * A number that may not be known. Where 0 would mean both "none" and "not measured", a function returns this:
 * its user must ask whether it is known before there is a number to print.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct optional {
    bool is_known;
    uint64_t value; // 0 if it is not known
};

static inline struct optional optional_of(uint64_t value)
{
    return (struct optional){ .is_known = true, .value = value };
}

static inline struct optional optional_if(bool is_known, uint64_t value)
{
    return (struct optional){ .is_known = is_known, .value = is_known ? value : 0 };
}

/* SPDX-License-Identifier: MIT */
/* The Range header: which bytes of a log are requested. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct range {
    bool is_given;
    bool is_suffix; // the last `length` bytes
    uint64_t offset;
    uint64_t length; // 0: to the end
};

/* Parses "bytes=N-", "bytes=N-M" or "bytes=-N"; NULL is the whole file. -ESPIPE for anything else. */
int range_parse(const char *header, struct range *ret, struct error *err);

/* Adjusts the range to a file of `size` bytes: offset and length are then absolute. -ESPIPE if it begins
 * beyond the end. */
int range_resolve(struct range *range, uint64_t size, struct error *err);

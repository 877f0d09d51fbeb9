/* SPDX-License-Identifier: MIT */
/* The Range header: which bytes of a log are asked for. */
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

/* Reads "bytes=N-", "bytes=N-M" or "bytes=-N"; NULL is the whole. -ESPIPE for anything else. */
int range_parse(const char *header, struct range *ret, struct error *err);

/* Fits the range to a file of `size` bytes: afterwards offset and length are plain. -ESPIPE when it begins
 * beyond the end. */
int range_resolve(struct range *range, uint64_t size, struct error *err);

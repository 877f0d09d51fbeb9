/* SPDX-License-Identifier: MIT */
/* Objects that are as large as their field tables allow, for tests of the limits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/record.h"

/* A text or a list: fields for which the table has a limit. */
bool record_fill_is_limited(const struct record_field *field);

/* Gives such a field of a zeroed object `size` bytes of text or items of a list, which are zero. */
void record_fill_field(const struct record_field *field, void *member, size_t size);

enum record_filling {
    FILL_WHOLE,
    FILL_BARE, // without spare fields, as record_encode_bare()
};

/* Gives every field of a zeroed object, also in nested records, its largest value: numbers all ones, texts
 * and lists at their limits, but no list more than `items_max` items. The caller clears it (record_clear). */
void record_fill(const struct record_type *type, enum record_filling filling, size_t items_max, void *object);

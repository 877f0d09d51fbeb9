/* SPDX-License-Identifier: MIT */
/* Every record type of src/, for tests of all of them. record_tables.py writes the list. Those that are
 * static are parts of these, or have nothing but numbers. */
#pragma once

#include <stddef.h>

#include "base/record.h"

extern const struct record_type *const record_tables[];
extern const size_t record_tables_count;

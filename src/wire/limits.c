/* SPDX-License-Identifier: MIT */
/* The rows of limits.h as a table. */
#include "wire/limits.h"

#define LIMIT_ROW(constant, name, value, unit, meaning) { (name), (value), (unit), (meaning) },
static const struct limit rows[] = { LIMIT_ROWS(LIMIT_ROW) };

const struct limit *limits_all(size_t *ret_count)
{
    *ret_count = sizeof(rows) / sizeof(rows[0]);
    return rows;
}

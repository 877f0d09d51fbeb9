/* SPDX-License-Identifier: MIT */
/* Compares records without encoding them. */
#pragma once

#include "base/record.h"

/* True if they would have the same bytes in encoded form. */
bool record_equal(const struct record_type *type, const void *a, const void *b);

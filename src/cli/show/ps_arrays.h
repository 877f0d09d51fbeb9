/* SPDX-License-Identifier: MIT */
/* Arrays in lists: one line summarizes all ended elements. */
#pragma once

#include <jansson.h>

#define PS_FOLDED "folded" // member of such a line: "12 elements ended: 10 done, 2 failed"

/* Removes the ended elements from `jobs`, and arrays of which nothing waits any more. The row of their array
 * has the summary; if the array is not in the list, a row for it replaces the first of them. */
void ps_fold_elements(json_t *jobs);

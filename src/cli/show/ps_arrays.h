/* SPDX-License-Identifier: MIT */
/* Arrays in lists for people: one line says how all its ended elements ended. */
#pragma once

#include <jansson.h>

#define PS_FOLDED "folded" // member of such a line: "12 elements ended: 10 done, 2 failed"

/* Takes the ended elements out of `jobs`. Their array says how many there were; when it is not in the list a
 * line for it is put in the place of the first of them. */
void ps_fold_elements(json_t *jobs);

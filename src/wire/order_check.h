/* SPDX-License-Identifier: MIT */
/* Checks every order of a controller before it is carried out, as if it came from an attacker. */
#pragma once

#include "base/error.h"
#include "base/record.h"

/*
 * Clears times and durations that are negative or so large that a sum could overflow. Then returns -ERANGE
 * with a sentence that names the first; the rest of the message is unchanged. Records in encoded form are
 * checked by the code that decodes them.
 */
int order_check(const struct record_type *type, void *message, struct error *err);

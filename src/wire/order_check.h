/* SPDX-License-Identifier: MIT */
/* Every order of a controller is checked before anything follows from it, as if it came from an attacker. */
#pragma once

#include "base/error.h"
#include "base/record.h"

/*
 * Takes times and durations out that are so large, or negative, that a sum with them could overflow. -ERANGE
 * then, and a sentence that names the first of them; the rest of the message is as it was. A record that is
 * carried as it was encoded is checked by the one who decodes it.
 */
int order_check(const struct record_type *type, void *message, struct error *err);

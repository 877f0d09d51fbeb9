/* SPDX-License-Identifier: MIT */
/* Values of options that are words of the user's own, such as names and reasons. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Takes any text but an empty one; `what` names the option in the sentence: "--user". */
int option_text(const char *what, const char *value, const char **ret, struct error *err);

/* For how long something is good: a second at least. */
int option_expiry(const char *what, const char *value, int64_t *ret_ms, struct error *err);

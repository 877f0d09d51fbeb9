/* SPDX-License-Identifier: MIT */
/* Members of JSON objects, with a default for those that are missing, null or of another type. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* NULL if there is none. Owned by the object. */
const char *field_text(const json_t *object, const char *name);

int64_t field_integer(const json_t *object, const char *name, int64_t otherwise);
double field_number(const json_t *object, const char *name, double otherwise);
bool field_is(const json_t *object, const char *name, const char *text);

/* True if it exists and is not null. */
bool field_is_known(const json_t *object, const char *name);

/* Something that was measured: false if it is missing or null, and *ret is 0 then. tools/check-numbers sees
 * to it that nothing measured is read with a default of 0, which would be shown as a measurement. */
bool field_measured(const json_t *object, const char *name, double *ret);

/* The member, safe for a terminal, or "-"; the caller frees it. */
char *field_shown(const json_t *object, const char *name);

#define _cleanup_json_ _cleanup_(json_decrefp)

/* SPDX-License-Identifier: MIT */
/* Record types (base/record.h) as JSON objects: one key per field, by name. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/record.h"

/*
 * Reads a JSON object over `object`, whose fields keep what they hold when their key is missing or null.
 * Strict: an unknown key, a value of another type or outside its field's range or limit is -EINVAL, -ERANGE
 * or -E2BIG with a sentence that names key, value and what was wanted. After a failure `object` holds what
 * was read so far; record_clear() frees it either way.
 */
int json_record_read(const struct record_type *type, json_t *value, void *object, struct error *err);

/* Every field as a key; NULL strings as null. The caller owns the result. */
json_t *json_record_write(const struct record_type *type, const void *object);

/* One field in an answer: null when it is absent, which of most numbers 0 says. The caller owns the result.
 */
json_t *json_record_answer(const struct record_field *field, const void *object);

/* What json_record_answer() makes of the field: "integer", "string|null". */
const char *json_record_answer_type(const struct record_field *field);

/* JSON Schema (the subset that OpenAPI 3.1 uses) of the objects json_record_read takes. */
json_t *json_record_schema(const struct record_type *type);

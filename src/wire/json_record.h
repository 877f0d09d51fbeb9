/* SPDX-License-Identifier: MIT */
/* Record types (base/record.h) as JSON objects: one key per field, by name. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/record.h"

/*
 * Reads a JSON object into `object`; fields whose key is missing or null keep their values. Strict: an
 * unknown key, a wrong type, or a value outside its range or limit is -EINVAL, -ERANGE or -E2BIG with a
 * sentence that names key, value and what is expected. After a failure `object` holds what was read so far;
 * record_clear() frees it in either case.
 */
int json_record_read(const struct record_type *type, json_t *value, void *object, struct error *err);

/* The same for one field, whose value this is; if it is missing (NULL) or null, `object` stays as it is. */
int json_record_read_field(const struct record_field *field, json_t *value, void *object, struct error *err);

/* Every field as a key; NULL strings as null. The caller owns the result. */
json_t *json_record_write(const struct record_type *type, const void *object);

/* One field of an answer: null if absent, for most numbers 0. The caller owns the result. */
json_t *json_record_answer(const struct record_field *field, const void *object);

/* The type of json_record_answer() for the field: "integer", "string|null". */
const char *json_record_answer_type(const struct record_field *field);

/* JSON Schema (the subset used by OpenAPI 3.1) of the objects accepted by json_record_read. */
json_t *json_record_schema(const struct record_type *type);

/* SPDX-License-Identifier: MIT */
/* Parses and formats JSON text, with the limits of wire/limits.h. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/field.h"
#include "base/memory.h"

/*
 * Parses one JSON array or object that fills `bytes` exactly. Depth and number of values are checked before
 * anything is allocated. Rejects duplicate keys, NUL in strings, invalid UTF-8, NaN and trailing text:
 * -EINVAL with the position. The caller owns *ret.
 */
int json_text_parse(const char *bytes, size_t length, json_t **ret, struct error *err);

/* One line without white space. Never NULL; the caller frees it. Does not take ownership of `value`. */
char *json_text_format(const json_t *value);

/* A string, or null for NULL. Bytes that are not UTF-8 become \xNN, so this never fails. */
json_t *json_text_string(const char *text);

/* RFC 3339 in UTC, or null for 0. */
json_t *json_text_time(int64_t wall_ms);

/* Parses an RFC 3339 time with offset into milliseconds since 1970; -1 if invalid. */
int64_t json_text_parse_time(const char *text);

/* Thousandths as a number: 2 or 2.5. */
json_t *json_text_milli(uint32_t milli);

/* Seconds with milliseconds. */
json_t *json_text_seconds(int64_t ms);

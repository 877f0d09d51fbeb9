/* SPDX-License-Identifier: MIT */
/* JSON text to values and back, with the limits of wire/limits.h. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

/*
 * Reads one JSON array or object that fills `bytes` exactly. Depth and number of values are counted before
 * anything is built. Duplicate keys, NUL in strings, bad UTF-8, NaN and text after the end are refused:
 * -EINVAL with the place. The caller owns *ret.
 */
int json_text_parse(const char *bytes, size_t length, json_t **ret, struct error *err);

/* One line without white space. Never NULL; the caller frees it. `value` stays the caller's. */
char *json_text_format(const json_t *value);

/* A string, or null for NULL. Bytes that are not UTF-8 become \xNN, so that there is always an answer. */
json_t *json_text_string(const char *text);

/* RFC 3339 in UTC, or null for 0. */
json_t *json_text_time(int64_t wall_ms);

/* Milliseconds since 1970 of an RFC 3339 time with its offset; -1 when it is none. */
int64_t json_text_parse_time(const char *text);

/* Thousandths as a number: 2 or 2.5. */
json_t *json_text_milli(uint32_t milli);

/* Seconds with milliseconds. */
json_t *json_text_seconds(int64_t ms);

#define _cleanup_json_ _cleanup_(json_decrefp)

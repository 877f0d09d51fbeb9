/* SPDX-License-Identifier: MIT */
/* Parsers for numbers, sizes, durations and lists of ids as users type them. Each rejects trailing text and
 * overflow. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Decimal integer within [min, max]. `what` names the value in errors: "--gpus". */
int parse_integer(
    const char *text, const char *what, int64_t min, int64_t max, int64_t *ret, struct error *err);

/* Bytes: "8G", "512M", "1.5G", "1024K", "100B"; a bare number is MiB. */
int parse_size(const char *text, const char *what, uint64_t *ret_bytes, struct error *err);

/* Milliseconds: "90m", "4h", "2-00:00:00", "1:30:00", "10s", "250ms"; a bare number is seconds. */
int parse_duration(const char *text, const char *what, int64_t *ret_ms, struct error *err);

/*
 * Parses "0,2-3" into an array of ids in the order written, which the caller frees. Rejects ids above
 * `max_id`, repeated ids, an empty list, and descending ranges.
 */
int parse_id_list(const char *text, const char *what, uint32_t max_id, uint32_t **ret_ids, size_t *ret_count,
    struct error *err);

/* Formats a size for display: "21.8 GiB". */
void format_size(uint64_t bytes, char *text, size_t size);

/* Formats a duration for display: "3h12m", "1m04s", "5s", "12ms". */
void format_duration(int64_t ms, char *text, size_t size);

/* A number from 0 to `max`, with or without a fraction. -EINVAL. */
int parse_number(const char *text, const char *what, double max, double *ret, struct error *err);

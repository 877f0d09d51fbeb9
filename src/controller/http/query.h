/* SPDX-License-Identifier: MIT */
/* The path and the query of a request. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

struct query {
    struct strings names, values; // percent-decoded
};

/* Splits "PATH?QUERY" and decodes the query. The path, which the caller frees, is not decoded. -EINVAL. */
int query_parse(const char *target, char **ret_path, struct query *ret, struct error *err);
void query_clear(struct query *query);

/* The value of a parameter, or NULL. */
const char *query_get(const struct query *query, const char *name);

/* Parses a parameter that is "1" or "0"; a missing one is false. */
int query_get_flag(const struct query *query, const char *name, bool *ret, struct error *err);

/* Refuses repeated parameters and those not in `known` (terminated by NULL), with the closest one as a
 * hint. */
int query_check(const struct query *query, const char *const *known, struct error *err);

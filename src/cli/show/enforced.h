/* SPDX-License-Identifier: MIT */
/* Limits that a job asked for and its node cannot enforce. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* "its memory is not enforced: node vm does not enforce -M (see mgpu doctor)", or NULL. `nodes` is the answer
 * of GET /nodes. The caller frees it. */
char *enforced_warning(const json_t *job, const json_t *nodes);

/* True when the question makes sense: it asked for a limit and is somewhere. */
bool enforced_is_asked(const json_t *job);

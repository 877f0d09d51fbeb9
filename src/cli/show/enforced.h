/* SPDX-License-Identifier: MIT */
/* Warns about limits requested by a job that its node cannot enforce. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* "its memory is not enforced: node vm does not enforce -M (see mgpu doctor)", or NULL. `nodes` is the answer
 * of GET /nodes. The caller frees it. */
char *enforced_warning(const json_t *job, const json_t *nodes);

/* True if the check applies: the job requested a limit and has a node. */
bool enforced_is_asked(const json_t *job);

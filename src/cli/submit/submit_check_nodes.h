/* SPDX-License-Identifier: MIT */
/* Warnings about the nodes that a request names. */
#pragma once

#include <jansson.h>

#include "cli/options/call.h"

/* Warns about each node of the members `nodelist` and `exclude` that is not there. mgpud accepts it, because
 * it may join later; one to be avoided whose name is misspelt would go unnoticed. Asks mgpud only if a member
 * is set. */
void submit_check_nodes(struct call *call, const json_t *ask);

/* SPDX-License-Identifier: MIT */
/* What is said of a node of which nothing is heard. */
#pragma once

#include "cli/options/list.h"

/* "node gpu2 unreachable since 12:04" of a job or a GPU on it; NULL when it is not so. The caller frees it.
 */
char *node_unreachable_text(const struct view *view, const json_t *object);

/* "since 12:04", of anything that has `unreachable_since`; NULL as above. */
char *away_since(const struct view *view, const json_t *object);

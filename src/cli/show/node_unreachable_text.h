/* SPDX-License-Identifier: MIT */
/* Text about an unreachable node. */
#pragma once

#include "cli/options/list.h"

/* "node gpu2 unreachable since 12:04", in a cell, for a job or a GPU on it; NULL if it is reachable. The
 * caller frees it. */
char *node_unreachable_text(const struct view *view, const json_t *object);

/* "node gpu2 has been unreachable since 12:04"; NULL as above. */
char *node_unreachable_sentence(const struct view *view, const json_t *object);

/* "since 12:04", for any object with `unreachable_since`; NULL as above. */
char *away_since(const struct view *view, const json_t *object);

/* SPDX-License-Identifier: MIT */
/* A job that mgpud has parked by its own rule (mgpud --park auto), in one line of a list. */
#pragma once

#include <jansson.h>

#include "cli/options/list.h"

/* "for job 42, back by 15:40", or with another cause "back by 15:40"; NULL: mgpud has not parked it by
 * itself. The caller frees it. */
char *park_text(const struct view *view, const json_t *job);

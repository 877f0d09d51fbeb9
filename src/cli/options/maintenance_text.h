/* SPDX-License-Identifier: MIT */
/* Describes a GPU or node that is out of use. */
#pragma once

#include "cli/options/list.h"

/* "paused: fan, until Fri 18:00": `state` with the members `reason` and `until`. The caller frees it. */
char *maintenance_text(const struct view *view, const json_t *object, const char *state);

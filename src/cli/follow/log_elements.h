/* SPDX-License-Identifier: MIT */
/* The logs that a job stands for: its own, or those of its elements if it is an array. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/api/client.h"

/*
 * Adds each job of `jobs` (as selector_resolve() returns them) to *ret, arrays as the numbers of their
 * elements, "7.3": of those that have started, with `is_follow` of all. -ENOENT: an array of which none has
 * started.
 */
int log_elements(struct client *client, const struct strings *jobs, bool is_follow, struct strings *ret,
    bool *ret_has_array, struct error *err);

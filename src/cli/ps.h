/* SPDX-License-Identifier: MIT */
/* The list of jobs, for the verbs that show it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/call.h"

/*
 * Asks for `path` and prints its jobs as chosen by -o; with the owners when `has_user`. `states` is the value
 * of -s, or NULL. Without `has_elements` the ended elements of an array are one line.
 */
int ps_show(struct call *call, const char *path, const char *states, bool has_user, bool has_elements,
    FILE *out, struct error *err);

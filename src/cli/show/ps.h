/* SPDX-License-Identifier: MIT */
/* The list of jobs, for several verbs. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

struct ps_choice {
    bool is_filtered;            // by state or name
    const char *states;          // the value of -s, or NULL
    const struct strings *named; // selected jobs, or NULL
    bool has_user;               // show owners
    bool is_folded;              // the ended elements of an array are one line
    bool keeps_ended;            // otherwise a terminal shows only the newest ended jobs, below the others
    bool keeps_active;           // otherwise a terminal shows as many of the others as it has lines
    size_t lines;                // of the screen that the caller fills itself
};

/* Requests `path` and prints its jobs as chosen by -o. -ENOENT if none of the selected jobs exists,
 * EXIT_PARTLY if some do not. */
int ps_show(
    struct call *call, const char *path, const struct ps_choice *choice, FILE *out, struct error *err);

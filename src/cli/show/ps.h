/* SPDX-License-Identifier: MIT */
/* The list of jobs, for the verbs that show it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/options/call.h"

struct ps_choice {
    const char *states;          // the value of -s, or NULL
    const struct strings *named; // jobs that were named, or NULL
    bool has_user;               // with the owners
    bool has_elements;           // without it the ended elements of an array are one line
    bool keeps_ended;            // without it a terminal shows only the newest ended jobs
};

/* Asks for `path` and prints its jobs as chosen by -o. -ENOENT when none of the jobs that were named is
 * there, EXIT_PARTLY when some are not. */
int ps_show(
    struct call *call, const char *path, const struct ps_choice *choice, FILE *out, struct error *err);

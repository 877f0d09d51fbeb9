/* SPDX-License-Identifier: MIT */
/*
 * Combines --module, --conda, --venv and -E into one text for the shell that runs before the command, in this
 * order. A part that fails prints the reason on standard error and exits the shell, so the job ends as
 * setup_failed.
 */
#pragma once

#include "base/strings.h"

/* Generated texts begin with this; the rest of the first line is the options. */
#define SETUP_TEXT_MARK "# mgpu: "

struct setup_options {
    const char *conda, *venv, *command; // NULL: not specified
    struct strings modules;
};

/* -E alone is used unchanged; NULL if nothing is specified. The caller frees it. */
char *setup_text_make(const struct setup_options *options);

/*
 * Text for `sh` that prints a line about each of --module and --conda which cannot be had on this machine,
 * and about nothing that only conda or the modules themselves could tell. NULL: there is nothing to check.
 * The caller frees it.
 */
char *setup_text_check(const struct setup_options *options);

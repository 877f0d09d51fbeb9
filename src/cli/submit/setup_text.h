/* SPDX-License-Identifier: MIT */
/*
 * --module, --conda, --venv and -E as one text for the shell that runs before the command, in this order.
 * Each part that fails says why on standard error and ends the shell, so that the job ends as setup_failed.
 */
#pragma once

#include "base/strings.h"

/* A text that was made here begins so; the rest of its first line is the wishes as options. */
#define SETUP_TEXT_MARK "# mgpu: "

struct setup_wishes {
    const char *conda, *venv, *command; // NULL: not wished
    struct strings modules;
};

/* -E alone is the text as it stands; NULL when nothing is wished. The caller frees it. */
char *setup_text_make(const struct setup_wishes *wishes);

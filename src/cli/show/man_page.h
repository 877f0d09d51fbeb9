/* SPDX-License-Identifier: MIT */
/* The man page of a verb, shown with man(1) on a terminal. */
#pragma once

#include <stdbool.h>

#include "cli/options/call.h"

/* Shows the page in man's pager (MGPU_PAGER if set) and returns true after the pager has exited; false,
 * without any output, if standard output is not a terminal, or man or the page is not installed. */
bool man_page_show(const struct command *command);

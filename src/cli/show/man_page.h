/* SPDX-License-Identifier: MIT */
/* The man page of a verb, as man(1) shows it to somebody who sits at a terminal. */
#pragma once

#include <stdbool.h>

#include "cli/options/call.h"

/* Shows the page in man's pager (MGPU_PAGER when that is set) and returns true when the reader has left it;
 * false when standard output is no terminal, or man or the page is not installed. Nothing was printed then.
 */
bool man_page_show(const struct command *command);

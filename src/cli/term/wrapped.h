/* SPDX-License-Identifier: MIT */
/* Sentences on a narrow screen: lines break between words. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "cli/term/screen.h"

/* Prints the rest of a line of which `column` columns are printed, and ends it. Further lines are indented by
 * `indent`. */
void wrapped_print(const struct screen *screen, const char *text, size_t column, size_t indent, FILE *out);

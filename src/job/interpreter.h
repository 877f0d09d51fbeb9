/* SPDX-License-Identifier: MIT */
/* What runs the text of a script, by its first line. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"

#define INTERPRETER_MARK  "#!"
#define INTERPRETER_SHELL "/bin/sh" // of a text without such a line

/* Appends the program of the "#!" line and, as the kernel does it, all that follows as one word; else the
 * shell. */
void interpreter_add(const char *text, struct strings *words);

/* Python looks for modules beside the file that it runs. */
bool interpreter_is_python(const struct strings *words);

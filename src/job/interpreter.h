/* SPDX-License-Identifier: MIT */
/* Determines the interpreter of a script from its first line. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"

#define INTERPRETER_MARK  "#!"
#define INTERPRETER_SHELL "/bin/sh" // for a text without such a line

/* Appends the program of the "#!" line and the rest of that line as one argument, as the kernel does; else
 * the shell. */
void interpreter_add(const char *text, struct strings *words);

/* True for Python, which searches for modules beside the file it runs. */
bool interpreter_is_python(const struct strings *words);

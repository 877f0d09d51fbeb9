/* SPDX-License-Identifier: MIT */
/* Finds the other programs of this installation. */
#pragma once

/* The path of the program: beside this one, as in a build directory, or relative to bin in an installation.
 * If it is in neither, the name itself, for PATH. The caller frees it. */
char *program_find(const char *name);

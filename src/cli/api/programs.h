/* SPDX-License-Identifier: MIT */
/* The other programs of this installation. */
#pragma once

/* The path of the program of that name: beside this one, as in a build folder, or where an installation puts
 * it, seen from bin. The bare name, for PATH, when it is in none of these places. The caller frees it. */
char *program_find(const char *name);

/* SPDX-License-Identifier: MIT */
/* The folders of other schedulers whose commands are typed as Python files: `python src/mgpu_srun.py`. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct python_file {
    const char *name; // relative to the folder
    const char *text;
};

/* Terminated by a NULL name: tests and requirements.txt, from contrib/python-names. */
extern const struct python_file python_files[];

/*
 * Makes the folder if it is missing, and in it a Python file for each command, which executes `program` (the
 * path of mgpu-compat) by that name, and the files above. A file that exists and was not made by this is left
 * as it is, unless `is_forced`: -EEXIST. Returns how many files it made, or a negative errno with a sentence.
 */
int compat_python_install(const char *folder, const char *program, bool is_forced, struct error *err);

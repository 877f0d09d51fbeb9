/* SPDX-License-Identifier: MIT */
/* The file of srun --multi-prog, which assigns programs to tasks. */
#pragma once

#include "compat/step/step.h"

struct multi_prog {
    struct multi_prog_line *lines;
    size_t count;
    char ***commands; // one for each task
    uint32_t n_tasks;
};

/* Reads lines such as "0-2,5 ./worker --rank %t" and "* ./rest", and sets the command of each task of the
 * step. %t is the number of the task, and %o its place among the tasks of its line. Empty lines and comments
 * are ignored. -EINVAL names the line, or the first task without one. The commands are valid until
 * multi_prog_clear(). */
int multi_prog_read(const char *path, struct step *step, struct multi_prog *ret, struct error *err);
void multi_prog_clear(struct multi_prog *programs);

/* SPDX-License-Identifier: MIT */
/* The columns of `gpus`. */
#pragma once

#include "cli/options/list.h"

extern const struct list_kind gpu_list;

/* Prints a line for each GPU with external processes; nothing if there are none. */
void gpu_print_tests(const json_t *gpus, FILE *out);
void gpu_print_external(const json_t *gpus, FILE *out);

/* "0:97% 1:- 2:x 3:idle" for status bars. */
void gpu_print_line(const json_t *gpus, FILE *out);

/* SPDX-License-Identifier: MIT */
/* How a GPU is shown: the columns of `gpus`. */
#pragma once

#include "cli/options/list.h"

extern const struct list_kind gpu_list;

/* A line for each GPU that processes use which mgpu did not start; nothing when there is none. */
void gpu_print_external(const json_t *gpus, FILE *out);

/* "0:97% 1:- 2:x 3:idle" for status bars. */
void gpu_print_line(const json_t *gpus, FILE *out);

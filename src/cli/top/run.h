/* SPDX-License-Identifier: MIT */
/* Runs `mgpu top` on a terminal, or makes one picture of it. */
#pragma once

#include "cli/top/top.h"

/* Reads what its user chose before. The rest of `top` is zeroed. */
void top_init(struct top *top, struct call *call);
void top_clear(struct top *top);

/* Until somebody leaves. -ENOTTY when the terminal is of no use for it. */
int top_run(struct top *top, const char *place, struct error *err);

/* Prints one picture of that size, without a terminal. */
int top_print(struct top *top, int rows, int columns, const char *place, struct error *err);

/* SPDX-License-Identifier: MIT */
/* Runs `mgpu top` on a terminal, or prints one screen. */
#pragma once

#include "cli/top/top.h"

/* Loads the preferences. The rest of `top` is zeroed. */
void top_init(struct top *top, struct call *call);
void top_clear(struct top *top);

/* Runs until the user quits. -ENOTTY if the terminal is unusable. */
int top_run(struct top *top, const char *place, struct error *err);

/* Prints one screen of that size, without a terminal. */
int top_print(struct top *top, int rows, int columns, const char *place, struct error *err);

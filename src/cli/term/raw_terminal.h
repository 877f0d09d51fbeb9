/* SPDX-License-Identifier: MIT */
/* How this terminal treats keys while mgpu has it, and as it was before. */
#pragma once

#include <stdbool.h>
#include <termios.h>

struct raw_terminal {
    bool is_set;
    struct termios before;
};

/* Every key is a byte, and nothing is done to what is printed. Nothing happens without a terminal. */
void raw_terminal_set(struct raw_terminal *raw);

/* Single keys, unseen; Ctrl-C and output stay as they are. */
void raw_terminal_set_keys(struct raw_terminal *raw);

/* As it was; harmless when nothing was set. */
void raw_terminal_restore(struct raw_terminal *raw);

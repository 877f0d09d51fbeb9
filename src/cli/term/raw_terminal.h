/* SPDX-License-Identifier: MIT */
/* Sets the terminal modes that mgpu needs, and restores the previous ones. */
#pragma once

#include <stdbool.h>
#include <termios.h>

struct raw_terminal {
    bool is_set;
    struct termios before;
};

/* Raw mode: every key is a byte, and output is not processed. No effect without a terminal. */
void raw_terminal_set(struct raw_terminal *raw);

/* Single keys without echo; Ctrl-C and output are not changed. */
void raw_terminal_set_keys(struct raw_terminal *raw);

/* Restores the previous modes; no effect if none were set. */
void raw_terminal_restore(struct raw_terminal *raw);

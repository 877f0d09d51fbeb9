/* SPDX-License-Identifier: MIT */
/* The terminal: the only part of `mgpu top` that uses curses. */
#pragma once

#include "base/error.h"
#include "cli/top/canvas.h"

struct curses_event {
    enum { CURSES_NOTHING, CURSES_KEY, CURSES_MOUSE, CURSES_RESIZED } kind;
    int code; // a character, or TOP_KEY_...
    int y, x, wheel;
    bool is_double;
};

/* Initializes the terminal. -ENOTTY with a sentence if it is unknown or cannot position the cursor. */
int curses_open(bool has_color, struct error *err);

/* The next event; CURSES_NOTHING if there is none. */
struct curses_event curses_next(void);

void curses_size(int *ret_rows, int *ret_columns);

/* Shows the canvas; only changes are sent. */
void curses_show(const struct canvas *canvas, const struct theme *theme);

/* Restores the terminal temporarily, and initializes it again. */
void curses_leave(void);
void curses_return(void);

void curses_close(void);

/* SPDX-License-Identifier: MIT */
/* The terminal itself: the only part of `mgpu top` that knows curses. */
#pragma once

#include "base/error.h"
#include "cli/top/canvas.h"

struct curses_event {
    enum { CURSES_NOTHING, CURSES_KEY, CURSES_MOUSE, CURSES_RESIZED } kind;
    int code; // a character, or one of TOP_KEY_...
    int y, x, wheel;
    bool is_double;
};

/* Takes the terminal over. -ENOTTY with a sentence when it cannot place text, or is not known. */
int curses_open(bool has_color, struct error *err);

/* The next thing that happened; CURSES_NOTHING when there is none now. */
struct curses_event curses_next(void);

void curses_size(int *ret_rows, int *ret_columns);

/* Shows the canvas; only what has changed is sent. */
void curses_show(const struct canvas *canvas, const struct theme *theme);

/* Gives the terminal back for a while, as it was found, and takes it again. */
void curses_leave(void);
void curses_return(void);

void curses_close(void);

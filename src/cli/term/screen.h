/* SPDX-License-Identifier: MIT */
/* The capabilities of an output descriptor: colours, width, and UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

enum color { COLOR_NONE, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_MAGENTA, COLOR_DIM, COLOR_BOLD, COLORS };

struct screen {
    bool is_tty, has_color, is_utf8;
    size_t width; // columns; 0: unlimited
};

/* Uses the descriptor, NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS and the locale. */
void screen_open(struct screen *screen, int fd, enum color_when when);

/* Between the parts of a line: "·", or "-" where that cannot be shown. */
const char *screen_dot(const struct screen *screen);

/* At the beginning of a line that is rewritten: turns with `turn`, or "-" where that cannot be shown. */
const char *screen_spinner(const struct screen *screen, unsigned turn);

/* The escape sequence of a colour, or of none for COLOR_NONE; empty without colours. */
const char *screen_color(const struct screen *screen, enum color color);

/* The columns of UTF-8 text on a terminal. Requires screen_open, which sets the locale. */
size_t screen_text_width(const char *text);

/* Length in bytes of the longest prefix of `text` that fits into `width` columns. */
size_t screen_text_fit(const char *text, size_t width);

/* The rows and columns of this terminal; false if there is none. */
bool screen_size(unsigned *ret_rows, unsigned *ret_columns);

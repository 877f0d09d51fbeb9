/* SPDX-License-Identifier: MIT */
/* What a descriptor can show: colours, its width, and whether it understands UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

enum color { COLOR_NONE, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_MAGENTA, COLOR_DIM, COLOR_BOLD, COLORS };

struct screen {
    bool is_tty, has_color, is_utf8;
    size_t width; // columns; 0 when the text may be as wide as it likes
};

/* Looks at the descriptor and at NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS and the locale. */
void screen_open(struct screen *screen, int fd, enum color_when when);

/* The bytes that switch a colour on, or off for COLOR_NONE; empty without colours. */
const char *screen_color(const struct screen *screen, enum color color);

/* Columns that UTF-8 text takes on a terminal. Needs screen_open first, which sets the locale. */
size_t screen_text_width(const char *text);

/* Length in bytes of the longest start of `text` that fits in `width` columns. */
size_t screen_text_fit(const char *text, size_t width);

/* The rows and columns of this terminal; false when there is none. */
bool screen_size(unsigned *ret_rows, unsigned *ret_columns);

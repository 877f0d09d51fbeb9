/* SPDX-License-Identifier: MIT */
/* The meaning of a character on the screen; a theme defines how it is shown. */
#pragma once

#include <stdbool.h>

enum look {
    LOOK_PLAIN,
    LOOK_DIM,
    LOOK_BORDER,
    LOOK_FOCUS, // the border of the panel with the focus
    LOOK_TITLE,
    LOOK_HEADER, // column headers
    LOOK_KEY,    // a key in the legend
    LOOK_GOOD,
    LOOK_WAIT,
    LOOK_BAD,
    LOOK_HELD,
    LOOK_WARN,
    LOOK_LOW, // bars, by load
    LOOK_MIDDLE,
    LOOK_HIGH,
    LOOK_MEMORY,
    LOOK_INPUT,
    LOOKS
};

/* The eight colours of the terminal, in its order. */
enum paint {
    PAINT_NONE = -1,
    PAINT_BLACK,
    PAINT_RED,
    PAINT_GREEN,
    PAINT_YELLOW,
    PAINT_BLUE,
    PAINT_MAGENTA,
    PAINT_CYAN,
    PAINT_WHITE
};

struct theme {
    const char *name, *help;
    struct {
        enum paint paint;
        bool is_bold, is_dim, is_reverse;
    } looks[LOOKS];
};

extern const struct theme top_themes[]; // terminated by a NULL name

/* Its index in the table, or -1. */
int top_theme_find(const char *name);

/* For a value between 0 and 1. */
enum look look_of_load(double part);

/* SPDX-License-Identifier: MIT */
/* What a character on the screen means; a theme says how that is shown. */
#pragma once

#include <stdbool.h>

enum look {
    LOOK_PLAIN,
    LOOK_DIM,
    LOOK_BORDER,
    LOOK_FOCUS, // the border of the panel that takes the keys
    LOOK_TITLE,
    LOOK_HEADER, // names of columns
    LOOK_KEY,    // a key in the legend
    LOOK_GOOD,
    LOOK_WAIT,
    LOOK_BAD,
    LOOK_HELD,
    LOOK_WARN,
    LOOK_LOW, // bars, by how full they are
    LOOK_MIDDLE,
    LOOK_HIGH,
    LOOK_MEMORY,
    LOOK_INPUT,
    LOOKS
};

/* The terminal's eight colours, in its order. */
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

extern const struct theme top_themes[]; // ended by a NULL name

/* Its place in the table, or -1. */
int top_theme_find(const char *name);

/* Of a value between 0 and 1. */
enum look look_of_load(double part);

/* SPDX-License-Identifier: MIT */
/* A screenful of characters in memory. All panels of `mgpu top` draw here; it then goes to curses or to text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#include "cli/top/look.h"

#define CANVAS_ROWS_MAX    500
#define CANVAS_COLUMNS_MAX 1000

struct cell {
    wchar_t text[2]; // a character and one combining mark; text[0] is 0 right of a wide character
    unsigned char look;
    bool is_selected;
};

struct canvas {
    int rows, columns;
    bool is_utf8; // else each character outside ASCII is replaced by one that looks alike
    struct cell *cells;
};

struct rect {
    int y, x, height, width; // height 0: not there
};

/* Makes room and blanks it; sizes beyond the limits are cut. */
void canvas_resize(struct canvas *canvas, int rows, int columns);
void canvas_clear(struct canvas *canvas);

/* NULL outside. */
struct cell *canvas_cell(const struct canvas *canvas, int y, int x);

/* Writes text into at most `width` columns, cut with an ellipsis. Control bytes, bad UTF-8 and characters
 * that change direction become '?', so that text of anybody may be given. The columns it took. */
int canvas_put(struct canvas *canvas, int y, int x, int width, enum look look, const char *text);
int canvas_printf(struct canvas *canvas, int y, int x, int width, enum look look, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The same, ending at the right edge of `width` columns. */
int canvas_put_right(struct canvas *canvas, int y, int x, int width, enum look look, const char *text);

void canvas_fill(struct canvas *canvas, const struct rect *area, enum look look, wchar_t character);

/* A frame with words in its upper edge, left and right (NULL: none). */
void canvas_box(struct canvas *canvas, const struct rect *area, enum look look, const char *title,
    const char *right_title);

/* What is inside of a box. */
struct rect rect_inside(const struct rect *area);

/* Shows cells as chosen. */
void canvas_select(struct canvas *canvas, int y, int x, int width);

/* Takes all colours off: what is shown is old. */
void canvas_dim(struct canvas *canvas);

/* Lines without trailing blanks. The caller frees it. */
char *canvas_text(const struct canvas *canvas);

/* Columns that text takes once it is on a canvas. */
int canvas_width(const char *text);

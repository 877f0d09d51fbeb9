/* SPDX-License-Identifier: MIT */
/* A screen of characters in memory. All panels of `mgpu top` draw here; it is then shown with curses or
 * printed as text. */
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
    bool is_utf8; // otherwise characters outside ASCII are replaced by similar ones
    struct cell *cells;
};

struct rect {
    int y, x, height, width; // height 0: hidden
};

/* Sets the size and clears it; sizes beyond the limits are reduced. */
void canvas_resize(struct canvas *canvas, int rows, int columns);
void canvas_clear(struct canvas *canvas);

/* NULL outside the canvas. */
struct cell *canvas_cell(const struct canvas *canvas, int y, int x);

/* Writes text into at most `width` columns, cut with an ellipsis. Control bytes, invalid UTF-8 and characters
 * that change direction become '?', so untrusted text is safe. Returns the columns used. */
int canvas_put(struct canvas *canvas, int y, int x, int width, enum look look, const char *text);
int canvas_printf(struct canvas *canvas, int y, int x, int width, enum look look, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The same, right-aligned in `width` columns. */
int canvas_put_right(struct canvas *canvas, int y, int x, int width, enum look look, const char *text);

void canvas_fill(struct canvas *canvas, const struct rect *area, enum look look, wchar_t character);

/* A frame with titles in its upper edge, left and right (NULL: none). */
void canvas_box(struct canvas *canvas, const struct rect *area, enum look look, const char *title,
    const char *right_title);

/* The interior of a box. */
struct rect rect_inside(const struct rect *area);

/* Highlights cells as selected. */
void canvas_select(struct canvas *canvas, int y, int x, int width);

/* Removes all colours, because the contents are out of date. */
void canvas_dim(struct canvas *canvas);

/* Lines without trailing blanks. The caller frees it. */
char *canvas_text(const struct canvas *canvas);

/* The columns of text on a canvas. */
int canvas_width(const char *text);

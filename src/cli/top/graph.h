/* SPDX-License-Identifier: MIT */
/* Bars, bar graphs and plots made of characters. Values are between 0 and 1; GRAPH_UNKNOWN leaves a gap. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "cli/top/canvas.h"

#define GRAPH_UNKNOWN (-1.0)

enum graph { GRAPH_BLOCK, GRAPH_BRAILLE, GRAPH_ASCII, GRAPHS };

/* "block", "braille" or "ascii"; -EINVAL with a sentence. */
int graph_parse(const char *text, enum graph *ret, struct error *err);
const char *graph_name(enum graph graph);

/* A horizontal bar as wide as `width`, in eighths of a character with blocks. */
void graph_bar(struct canvas *canvas, enum graph graph, int y, int x, int width, enum look look, double part);

/* The last values that fit into `width` columns, newest at the right. Braille shows two per column. */
void graph_line(
    struct canvas *canvas, enum graph graph, int y, int x, int width, const double *values, size_t count);

/* All values in an area of several rows; values in the same column are averaged. */
void graph_plot(struct canvas *canvas, enum graph graph, const struct rect *area, enum look look,
    const double *values, size_t count);

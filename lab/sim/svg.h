/* SPDX-License-Identifier: MIT */
/* Shared by both drawings. The pictures are self-contained: no script, font or style sheet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* A rectangle of a picture to draw in. */
struct panel {
    double x, y, width, height;
};

void svg_open(struct buffer *out, double width, double height, const char *title);
void svg_text(struct buffer *out, double x, double y, const char *anchor, const char *text);
void svg_line(struct buffer *out, double x1, double y1, double x2, double y2, const char *colour);

/* Ticks and labels below the panel, and light vertical lines; times from 0 to end_ms. */
void svg_time_axis(struct buffer *out, const struct panel *panel, int64_t end_ms);
/* Round values at the left, from 0 to `most`; returns the value at the panel's top. */
double svg_value_axis(struct buffer *out, const struct panel *panel, double most, const char *title);

/* Colours that are easy to distinguish, "#rrggbb"; `number` is below SVG_COLOURS. */
#define SVG_COLOURS 12U
const char *svg_colour(size_t number);

/* "2d", "6h", "30m", "15s", "1d 6h". */
void svg_duration(int64_t ms, char *text, size_t size);

/* Ends the picture and writes it to the file. */
int svg_write(struct buffer *out, const char *path, struct error *err);

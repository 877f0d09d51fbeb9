/* SPDX-License-Identifier: MIT */
/* Draws what `mgpu top` knows on its canvas. Every panel is a function of the model and an area. */
#pragma once

#include "cli/top/top.h"

/* A whole picture for a terminal of that size. */
void top_draw(struct top *top, int rows, int columns);

void top_draw_gpus(struct top *top, const struct rect *area);
void top_draw_cells(struct top *top, const struct rect *area); // one line for each node
void top_draw_jobs(struct top *top, const struct rect *area);
void top_draw_log(struct top *top, const struct rect *area);
void top_draw_page(struct top *top, const struct rect *area); // everything about one job
void top_draw_nodes(struct top *top, const struct rect *area);
void top_draw_users(struct top *top, const struct rect *area);
void top_draw_timeline(struct top *top, const struct rect *area);
void top_draw_popup(struct top *top);

/* The output of the selected job, or why it waits, without a frame. */
void top_draw_log_lines(struct top *top, const struct rect *area);

/* Notes what the mouse hits there. */
void top_hit(struct top *top, const struct rect *area, enum hit kind, int64_t value);

/* The frame of a panel, bright when it takes the keys; what is inside of it. */
struct rect top_draw_frame(
    struct top *top, const struct rect *area, bool is_focus, const char *title, const char *right_title);

/* What the command line's colours mean here. */
enum look look_of_color(enum color color);

/* First of `count` rows to be shown so that `row` is among the `height` shown. */
size_t top_scroll_to(size_t offset, size_t row, size_t count, size_t height);

/* The GPU in the row of the list that is selected, or NULL. */
json_t *top_selected_gpu(const struct top *top);

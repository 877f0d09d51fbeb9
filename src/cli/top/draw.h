/* SPDX-License-Identifier: MIT */
/* Draws the model of `mgpu top` on its canvas. Every panel is a function of the model and an area. */
#pragma once

#include "cli/top/top.h"

/* Draws the whole screen for a terminal of that size. */
void top_draw(struct top *top, int rows, int columns);

void top_draw_gpus(struct top *top, const struct rect *area);
void top_draw_cells(struct top *top, const struct rect *area); // one line per node
void top_draw_jobs(struct top *top, const struct rect *area);
void top_draw_log(struct top *top, const struct rect *area);
void top_draw_page(struct top *top, const struct rect *area); // all details of a job
void top_draw_nodes(struct top *top, const struct rect *area);
void top_draw_users(struct top *top, const struct rect *area);
void top_draw_timeline(struct top *top, const struct rect *area);
void top_draw_popup(struct top *top);

/* The output of the selected job, or why it waits, without a frame. */
void top_draw_log_lines(struct top *top, const struct rect *area);

/* Records what a mouse click there selects. */
void top_hit(struct top *top, const struct rect *area, enum hit kind, int64_t value);

/* Draws the frame of a panel, highlighted if it has the focus; returns its interior. */
struct rect top_draw_frame(
    struct top *top, const struct rect *area, bool is_focus, const char *title, const char *right_title);

/* The look that corresponds to a colour of the command line. */
enum look look_of_color(enum color color);

/* The first of `count` rows to show, so that `row` is among the `height` visible ones. */
size_t top_scroll_to(size_t offset, size_t row, size_t count, size_t height);

/* The GPU in the row of the list that is selected, or NULL. */
json_t *top_selected_gpu(const struct top *top);

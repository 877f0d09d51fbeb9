/* SPDX-License-Identifier: MIT */
/* Mouse targets are recorded when they are drawn; the last one drawn is on top. */
#include "cli/top/keys.h"

#define WHEEL_ROWS 3

static bool is_inside(const struct rect *area, int y, int x)
{
    return y >= area->y && y < area->y + area->height && x >= area->x && x < area->x + area->width;
}

static void hit_panel(struct top *top, int64_t value)
{
    top->view.focus = (enum panel)value;
}

static void hit_job(struct top *top, int64_t value)
{
    if (top->view.page == PAGE_MAIN)
        top->view.focus = PANEL_JOBS;
    top_select_job(top, value);
}

static void hit_gpu(struct top *top, int64_t value)
{
    top->view.focus = PANEL_GPUS;
    top->view.gpu_row = (size_t)value;
}

static void hit_order(struct top *top, int64_t value)
{
    top_sort_by(top, (int)value);
}

static void hit_tab(struct top *top, int64_t value)
{
    top->view.focus = (enum panel)value;
    top_show_page(top, PAGE_MAIN);
}

static void hit_node(struct top *top, int64_t value)
{
    top->view.node_row = (size_t)value;
}

static void (*const hits[])(struct top *top, int64_t value) = {
    [HIT_PANEL] = hit_panel,
    [HIT_JOB] = hit_job,
    [HIT_GPU] = hit_gpu,
    [HIT_ORDER] = hit_order,
    [HIT_TAB] = hit_tab,
    [HIT_NODE] = hit_node,
};

static const struct hit_area *find(const struct top *top, int y, int x)
{
    for (size_t i = top->view.n_hits; i-- > 0;)
        if (is_inside(&top->view.hits[i].area, y, x))
            return &top->view.hits[i];
    return NULL;
}

/* The wheel scrolls the panel under the pointer. */
static void turn(struct top *top, int y, int x, int wheel)
{
    for (int i = 0; i < PANELS && top->view.page == PAGE_MAIN; i++)
        if (is_inside(&top->layout.panels[i], y, x))
            top->view.focus = (enum panel)i;
    top_move(top, (long)wheel * WHEEL_ROWS);
}

void top_click(struct top *top, int y, int x, int wheel, bool is_double)
{
    top->is_changed = true;
    top_update_rows(top);
    if (top->view.prompt.done != NULL)
        return;
    if (top->view.popup != POPUP_NONE) {
        (void)top_popup_press(top, wheel < 0 ? TOP_KEY_UP : wheel > 0 ? TOP_KEY_DOWN : TOP_KEY_ESCAPE);
        return;
    }
    if (wheel != 0) {
        turn(top, y, x, wheel);
        return;
    }
    const struct hit_area *hit = find(top, y, x);
    if (hit == NULL)
        return;
    enum hit kind = hit->kind;
    hits[kind](top, hit->value);
    if (is_double && kind != HIT_ORDER && kind != HIT_PANEL)
        top_open(top);
}

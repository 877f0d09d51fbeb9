/* SPDX-License-Identifier: MIT */
/*
 * header
 * GPUs   as many rows as needed, at most half of the body
 * jobs   the rest
 * log    a fifth, at least two lines
 * legend
 *
 * With few rows one panel has the whole body, below a line of tabs.
 */
#include "cli/top/layout.h"

#include <string.h>

#define FRAME        2 // rows of a box without contents
#define LOG_ROWS_MIN (2 + FRAME)
#define JOB_ROWS_MIN (4 + FRAME)

static int least(int a, int b)
{
    return a < b ? a : b;
}

static struct rect full_width(const struct layout_input *input, int y, int height)
{
    return (struct rect){ .y = y, .x = 0, .height = height, .width = input->columns };
}

static int gpu_lines(const struct layout_input *input, const struct layout *layout)
{
    if (layout->is_cells)
        return input->nodes;
    int lines = (input->gpus + layout->gpu_columns - 1) / layout->gpu_columns;
    return lines > 0 ? lines : 1;
}

static void stack_panels(const struct layout_input *input, struct layout *layout)
{
    int all = layout->body.height;
    int log = all / 5 > LOG_ROWS_MIN ? all / 5 : LOG_ROWS_MIN;
    int gpus = gpu_lines(input, layout) + FRAME;
    int most = all - log - JOB_ROWS_MIN; // jobs need their rows too
    gpus = least(gpus, most > FRAME + 1 ? most : FRAME + 1);
    int jobs = all - gpus - log;
    int y = layout->body.y;
    layout->panels[PANEL_GPUS] = full_width(input, y, gpus);
    layout->panels[PANEL_JOBS] = full_width(input, y + gpus, jobs);
    layout->panels[PANEL_LOG] = full_width(input, y + gpus + jobs, log);
}

void layout_make(const struct layout_input *input, struct layout *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->is_too_small = input->rows < LAYOUT_ROWS_MIN || input->columns < LAYOUT_COLUMNS_MIN;
    bool has_tabs = input->rows < LAYOUT_TABS_BELOW;
    bool is_large = has_tabs || input->is_maximized; // there is space for a row each
    ret->is_cells = input->gpus > LAYOUT_GPU_ROWS_MAX && !is_large;
    ret->gpu_columns = input->columns >= LAYOUT_TWO_FROM && input->gpus > 1 ? 2 : 1;
    int width = input->columns / ret->gpu_columns;
    ret->has_power = input->columns >= LAYOUT_POWER_FROM;
    ret->has_line = input->columns >= LAYOUT_LINE_FROM && width >= LAYOUT_POWER_FROM;
    if (ret->is_too_small)
        return;
    int top = has_tabs ? 2 : 1;
    ret->header = full_width(input, 0, 1);
    ret->tabs = full_width(input, 1, has_tabs ? 1 : 0);
    ret->body = full_width(input, top, input->rows - top - 1);
    ret->legend = full_width(input, input->rows - 1, 1);
    if (is_large)
        ret->panels[input->focus] = ret->body;
    else
        stack_panels(input, ret);
}

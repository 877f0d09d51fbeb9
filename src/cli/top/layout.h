/* SPDX-License-Identifier: MIT */
/* The layout of `mgpu top`: a pure function of the terminal's size and contents. */
#pragma once

#include <stdbool.h>

#include "cli/top/canvas.h"

enum panel { PANEL_GPUS, PANEL_JOBS, PANEL_LOG, PANELS };

#define LAYOUT_COLUMNS_MIN  20
#define LAYOUT_ROWS_MIN     5
#define LAYOUT_TABS_BELOW   16  // rows: below this, one panel at a time
#define LAYOUT_POWER_FROM   80  // columns: shows temperature and power
#define LAYOUT_LINE_FROM    100 // columns: shows a graph of the last minutes beside each GPU
#define LAYOUT_TWO_FROM     161 // columns: shows GPUs in two columns
#define LAYOUT_GPU_ROWS_MAX 16  // GPUs with a row each beside other panels; more: one line of cells per node

struct layout_input {
    int rows, columns;
    int gpus, nodes;
    enum panel focus;
    bool is_maximized;
};

struct layout {
    struct rect header, tabs, body, legend;
    struct rect panels[PANELS]; // height 0: hidden
    bool has_line, has_power;   // of GPUs
    bool is_cells;              // one line per node
    int gpu_columns;
    bool is_too_small;
};

void layout_make(const struct layout_input *input, struct layout *ret);

/* SPDX-License-Identifier: MIT */
/* The options of `mgpu top`, which tui has too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "cli/top/graph.h"

struct top_options {
    bool is_once, has_graph;
    int64_t rows, columns; // of --size, 0: not given
    int64_t refresh_ms;    // 0: as in the last session
    enum graph graph;
    const char *theme;
};

extern const struct option_row top_rows[];

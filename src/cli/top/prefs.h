/* SPDX-License-Identifier: MIT */
/* The preferences of `mgpu top`: a small file of "key: value" lines in the user's state directory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/top/graph.h"
#include "cli/top/order.h"

#define REFRESH_MS     2000
#define REFRESH_MIN_MS 1000
#define REFRESH_MAX_MS 60000

struct top_prefs {
    int theme;
    enum graph graph;
    bool has_graph; // chosen by the user; otherwise depends on the terminal
    char *columns;  // of jobs, names as of `mgpu ps -o help`
    struct order order;
    int64_t refresh_ms;
    bool is_mine;
};

#define TOP_COLUMNS "mark,id,user,name,state,gpus,time,left,why"
#define TOP_ORDER   "state,turn"

void top_prefs_init(struct top_prefs *prefs);

/* Reads preferences from `text`; unknown lines are ignored, so old files are harmless. */
void top_prefs_read(struct top_prefs *prefs, const char *text);

/* The caller frees it. */
char *top_prefs_text(const struct top_prefs *prefs);

/* $XDG_STATE_HOME/mgpu/top. A missing file is not an error. */
void top_prefs_load(struct top_prefs *prefs);
int top_prefs_save(const struct top_prefs *prefs, struct error *err);

void top_prefs_clear(struct top_prefs *prefs);

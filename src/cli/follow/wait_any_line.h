/* SPDX-License-Identifier: MIT */
/* The line that `wait --any` shows on a terminal: how many of its jobs wait and run, and which is expected to
 * end first. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strings.h"
#include "cli/options/call.h"

struct wait_any_line {
    const struct call *call;
    struct screen screen; // of stderr
    int64_t since_ms;     // boot clock
    int64_t next_ms;      // time of the next update
    unsigned turns;       // number of updates so far
};

/* False where there is no line: elsewhere than on a terminal, with -q, and with --json. */
bool wait_any_line_init(struct wait_any_line *line, const struct call *call);

/* The path of the API whose answers wait_any_line_paint shows. The caller frees it. */
char *wait_any_line_path(const struct strings *jobs);

/* Milliseconds until wait_any_line_paint is due. */
int wait_any_line_wait_ms(const struct wait_any_line *line);

/* Shows the jobs of this list of the API. */
void wait_any_line_paint(struct wait_any_line *line, const json_t *list);

/* Removes the line from the terminal, before other output. */
void wait_any_line_clear(struct wait_any_line *line);

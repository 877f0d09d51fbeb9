/* SPDX-License-Identifier: MIT */
/* The messages of `run` on stderr while its job waits, and when it starts. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/options/call.h"

struct waiting_line {
    const struct call *call;
    struct screen screen; // of stderr
    int64_t since_ms;     // boot clock
    int64_t next_ms;      // time of the next message; 0: none
    unsigned turns;       // number of updates so far
    bool is_painted;      // the line is currently shown
    bool is_detaching;    // Ctrl-C leaves the job queued
};

void waiting_line_init(struct waiting_line *line, const struct call *call, bool is_detaching);

/* Milliseconds until waiting_line_paint is due, -1: never. */
int waiting_line_wait_ms(const struct waiting_line *line);

/* True if the position in the queue should be queried before the next update. */
bool waiting_line_wants_news(const struct waiting_line *line);

/* Shows that the job waits: updated in place on a terminal, printed once elsewhere. */
void waiting_line_paint(struct waiting_line *line, const json_t *job);

/* Removes the line from the terminal, before other output. */
void waiting_line_clear(struct waiting_line *line);

/* Reports that the job runs, and ends the line. */
void waiting_line_started(struct waiting_line *line, const json_t *job);

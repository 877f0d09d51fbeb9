/* SPDX-License-Identifier: MIT */
/* What `run` says on stderr while its job waits, and when it starts. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/options/call.h"

struct waiting_line {
    const struct call *call;
    struct screen screen; // of stderr
    int64_t since_ms;     // boot clock
    int64_t next_ms;      // when to say something again; 0: never
    unsigned turns;       // paints so far
    bool is_painted;      // the terminal shows the line now
    bool is_detaching;    // Ctrl-C leaves the job queued
};

void waiting_line_init(struct waiting_line *line, const struct call *call, bool is_detaching);

/* Milliseconds until waiting_line_paint is due, -1 for never. */
int waiting_line_wait_ms(const struct waiting_line *line);

/* True when the position shown should be asked for anew before the next paint. */
bool waiting_line_wants_news(const struct waiting_line *line);

/* Says that the job waits: repainted on a terminal, once elsewhere. */
void waiting_line_paint(struct waiting_line *line, const json_t *job);

/* Takes the line off the terminal, before anything else is printed. */
void waiting_line_clear(struct waiting_line *line);

/* Says that the job runs; there is no line after it. */
void waiting_line_started(struct waiting_line *line, const json_t *job);

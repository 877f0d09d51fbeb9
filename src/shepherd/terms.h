/* SPDX-License-Identifier: MIT */
/* Time limit and suspension of a step: from its spec, and from the spool file "terms" if it exists. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shepherd/shepherd.h"

struct terms {
    const struct launch_spec *spec;
    int64_t started_ms; // boot clock
    int64_t limit_ms;   // from the start; 0: no limit
    bool is_suspended;  // requested state
    bool is_warned;     // the signal before the limit was sent
    int timer_fd;       // for the earlier of the two times, or -1: none
};

void terms_open(struct terms *terms, const struct shepherd *shepherd, int64_t started_ms);
void terms_close(struct terms *terms);

/* Reads the file again. Allocates nothing. */
void terms_read(struct terms *terms, int spool_fd);

enum terms_due { DUE_NOTHING, DUE_WARNING, DUE_END };

/* Returns what is due now; a warning is due once. Arms the timer for the next event. */
enum terms_due terms_next(struct terms *terms);

/* SPDX-License-Identifier: MIT */
/* How long a step may run and whether it is to stand still: what its spec says, and the spool file "terms"
 * when there is one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shepherd/shepherd.h"

struct terms {
    const struct launch_spec *spec;
    int64_t started_ms; // boot clock
    int64_t limit_ms;   // from then on; 0: none
    bool is_suspended;  // wanted
    bool is_warned;     // the signal before the end was sent
    int timer_fd;       // the next of the two times, or -1: there is none
};

void terms_open(struct terms *terms, const struct shepherd *shepherd, int64_t started_ms);
void terms_close(struct terms *terms);

/* The file may be another one now. Allocates nothing. */
void terms_read(struct terms *terms, int spool_fd);

enum terms_due { DUE_NOTHING, DUE_WARNING, DUE_END };

/* What is due now; a warning is due once. Arms the timer for what comes next. */
enum terms_due terms_next(struct terms *terms);

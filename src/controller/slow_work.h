/* SPDX-License-Identifier: MIT */
/*
 * A progress line for work that takes longer than two seconds. On a terminal it is rewritten in place;
 * elsewhere there is one line every ten seconds, so logs stay short. Shorter work shows nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SLOW_WORK_PATIENT_MS 2000

enum slow_work_reader {
    SLOW_WORK_PERSON, // on standard error
    SLOW_WORK_LOG, // of a daemon; and the status at its service manager, which grants it more time to start
};

struct slow_work {
    enum slow_work_reader reader;
    const char *status_after; // the status at the service manager afterwards; NULL: not known
    char what[80];            // the latest step
    int64_t since_ms;         // boot clock: the begin; 0 after slow_work_end
    int64_t next_ms;          // when the next line is due
    bool is_terminal;
    bool is_shown; // at least one line was
};

/* Nothing is shown yet. */
void slow_work_begin(struct slow_work *work, enum slow_work_reader reader, const char *status_after);

/* Shows "WHAT: 43%, 12s" if a line is due; cheap if not. `total` 0: the total is unknown. */
void slow_work_step(struct slow_work *work, const char *what, uint64_t done, uint64_t total);

/* Removes the line from the terminal before other output. */
void slow_work_hide(const struct slow_work *work);

/* Removes the line from the terminal, and logs the duration if it was slow. */
void slow_work_end(struct slow_work *work);

/* SPDX-License-Identifier: MIT */
/* How long a session at a job lasts when the job does not end it before. The job knows nothing of it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define TIMEOUT_TURN_MS 10000 // one wait; so many in a row without a word are counted

struct timeouts {
    int64_t session_ms;         // from its beginning; 0: any time
    int64_t silence_ms;         // without output or news of the job; 0: any time
    int64_t silent_turns;       // the same, in waits of TIMEOUT_TURN_MS; 0: any number
    int64_t begun_ms, heard_ms; // boot clock
};

/* NULL: no limit, in all of these. */
void timeouts_begin(struct timeouts *timeouts);
void timeouts_hear(struct timeouts *timeouts);

/* Milliseconds until timeouts_check is due, -1 for never. */
int timeouts_left_ms(const struct timeouts *timeouts);

/* -ETIME with the limit that was reached, else 0. */
int timeouts_check(const struct timeouts *timeouts, struct error *err);

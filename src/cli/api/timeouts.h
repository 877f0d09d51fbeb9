/* SPDX-License-Identifier: MIT */
/* Timeouts of a session with a job. They end the session, not the job. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define TIMEOUT_TURN_MS 10000 // one wait; consecutive silent ones are counted

struct timeouts {
    int64_t session_ms;            // from its start; 0: no limit
    int64_t silence_ms;            // without output or a change of the job; 0: no limit
    int64_t silent_turns;          // the same, in waits of TIMEOUT_TURN_MS; 0: no limit
    int64_t begun_ms, received_ms; // boot clock
};

/* NULL is allowed in all of these: no limit. */
void timeouts_begin(struct timeouts *timeouts);
void timeouts_note_received(struct timeouts *timeouts);

/* Milliseconds until timeouts_check is due, -1 for never. */
int timeouts_left_ms(const struct timeouts *timeouts);

/* The earlier of two such times. */
int timeouts_earlier(int a_ms, int b_ms);

/* -ETIME with the timeout that was reached, else 0. */
int timeouts_check(const struct timeouts *timeouts, struct error *err);

/* SPDX-License-Identifier: MIT */
/* How long a session at a job lasts when the job does not end it before. The job knows nothing of it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define PATIENCE_TURN_MS 10000 // one wait; so many in a row without a word are counted

struct patience {
    int64_t session_ms;         // from its beginning; 0: any time
    int64_t silence_ms;         // without output or news of the job; 0: any time
    int64_t silent_turns;       // the same, in waits of PATIENCE_TURN_MS; 0: any number
    int64_t begun_ms, heard_ms; // boot clock
};

/* NULL is patience without end in all of these. */
void patience_begin(struct patience *patience);
void patience_hear(struct patience *patience);

/* Milliseconds until patience_check is due, -1 for never. */
int patience_left_ms(const struct patience *patience);

/* -ETIME with the limit that was reached, else 0. */
int patience_check(const struct patience *patience, struct error *err);

/* SPDX-License-Identifier: MIT */
#include "cli/api/timeouts.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "base/clock.h"

void timeouts_begin(struct timeouts *timeouts)
{
    if (timeouts != NULL)
        timeouts->begun_ms = timeouts->received_ms = clock_boot_ms();
}

void timeouts_note_received(struct timeouts *timeouts)
{
    if (timeouts != NULL)
        timeouts->received_ms = clock_boot_ms();
}

/* The boot clock at which each limit is reached; INT64_MAX if there is none. */
static int64_t session_end(const struct timeouts *timeouts)
{
    return timeouts->session_ms > 0 ? timeouts->begun_ms + timeouts->session_ms : INT64_MAX;
}

static int64_t silence_end(const struct timeouts *timeouts)
{
    return timeouts->silence_ms > 0 ? timeouts->received_ms + timeouts->silence_ms : INT64_MAX;
}

static int64_t turns_end(const struct timeouts *timeouts)
{
    return timeouts->silent_turns > 0 ? timeouts->received_ms + timeouts->silent_turns * TIMEOUT_TURN_MS
                                      : INT64_MAX;
}

int timeouts_left_ms(const struct timeouts *timeouts)
{
    int64_t (*const ends[])(const struct timeouts *) = { session_end, silence_end, turns_end };
    int64_t first = INT64_MAX, now = clock_boot_ms();
    for (size_t i = 0; timeouts != NULL && i < sizeof(ends) / sizeof(ends[0]); i++)
        first = ends[i](timeouts) < first ? ends[i](timeouts) : first;
    if (first == INT64_MAX)
        return -1;
    return first <= now ? 0 : first - now > INT32_MAX ? INT32_MAX : (int)(first - now);
}

int timeouts_earlier(int a_ms, int b_ms)
{
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

int timeouts_check(const struct timeouts *timeouts, struct error *err)
{
    int64_t now = clock_boot_ms();
    if (timeouts == NULL)
        return 0;
    if (now >= session_end(timeouts))
        return error_set(err, -ETIME, "session timeout after %" PRId64 " s", timeouts->session_ms / 1000);
    if (now >= silence_end(timeouts))
        return error_set(err, -ETIME, "no output for %" PRId64 " s", timeouts->silence_ms / 1000);
    if (now >= turns_end(timeouts))
        return error_set(err, -ETIME, "no output in %" PRId64 " consecutive waits of %d s",
            timeouts->silent_turns, TIMEOUT_TURN_MS / 1000);
    return 0;
}

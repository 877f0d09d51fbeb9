/* SPDX-License-Identifier: MIT */
#include "cli/api/patience.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "base/clock.h"

void patience_begin(struct patience *patience)
{
    if (patience != NULL)
        patience->begun_ms = patience->heard_ms = clock_boot_ms();
}

void patience_hear(struct patience *patience)
{
    if (patience != NULL)
        patience->heard_ms = clock_boot_ms();
}

/* The boot clock at which each limit is reached; INT64_MAX for one that there is not. */
static int64_t session_end(const struct patience *patience)
{
    return patience->session_ms > 0 ? patience->begun_ms + patience->session_ms : INT64_MAX;
}

static int64_t silence_end(const struct patience *patience)
{
    return patience->silence_ms > 0 ? patience->heard_ms + patience->silence_ms : INT64_MAX;
}

static int64_t turns_end(const struct patience *patience)
{
    return patience->silent_turns > 0 ? patience->heard_ms + patience->silent_turns * PATIENCE_TURN_MS
                                      : INT64_MAX;
}

int patience_left_ms(const struct patience *patience)
{
    int64_t (*const ends[])(const struct patience *) = { session_end, silence_end, turns_end };
    int64_t first = INT64_MAX, now = clock_boot_ms();
    for (size_t i = 0; patience != NULL && i < sizeof(ends) / sizeof(ends[0]); i++)
        first = ends[i](patience) < first ? ends[i](patience) : first;
    if (first == INT64_MAX)
        return -1;
    return first <= now ? 0 : first - now > INT32_MAX ? INT32_MAX : (int)(first - now);
}

int patience_check(const struct patience *patience, struct error *err)
{
    int64_t now = clock_boot_ms();
    if (patience == NULL)
        return 0;
    if (now >= session_end(patience))
        return error_set(err, -ETIME, "the session has lasted %" PRId64 " s", patience->session_ms / 1000);
    if (now >= silence_end(patience))
        return error_set(err, -ETIME, "nothing came for %" PRId64 " s", patience->silence_ms / 1000);
    if (now >= turns_end(patience))
        return error_set(err, -ETIME, "nothing came in %" PRId64 " waits of %d s in a row",
            patience->silent_turns, PATIENCE_TURN_MS / 1000);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Nothing is shown in the first second, and then at most ten times a second. */
#include "sim/progress.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"

#define CALLS_PER_LOOK 1024U
#define QUIET_MS       1000
#define PERIOD_MS      100
#define BAR_WIDTH      30U

void progress_begin(struct progress *progress, bool is_on)
{
    *progress = (struct progress){ .is_on = is_on, .begin_ms = clock_boot_ms() };
}

void progress_show(struct progress *progress, size_t done, size_t total)
{
    if (!progress->is_on || progress->calls++ % CALLS_PER_LOOK != 0)
        return;
    int64_t now_ms = clock_boot_ms(), elapsed_ms = now_ms - progress->begin_ms;
    if (elapsed_ms < QUIET_MS || now_ms - progress->shown_ms < PERIOD_MS)
        return;
    progress->shown_ms = now_ms;
    progress->is_shown = true;
    double part = total == 0 ? 1 : (double)done / (double)total;
    char bar[BAR_WIDTH + 1], left[32] = "?";
    for (size_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = (double)i < part * BAR_WIDTH ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    if (part > 0)
        format_duration((int64_t)((double)elapsed_ms * (1 - part) / part), left, sizeof(left));
    (void)fprintf(
        stderr, "\r\033[K[%s] %3.0f %%  %zu of %zu jobs, about %s left", bar, 100 * part, done, total, left);
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown)
        (void)fputs("\r\033[K", stderr);
}

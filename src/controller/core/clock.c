/* SPDX-License-Identifier: MIT */
/*
 * The core's clock: the boot clock plus an offset. The wall clock may be set at any time, by hand or by NTP;
 * backoff, --begin and --deadline must neither fire early nor hang because of that.
 *
 * - Differences up to CLOCK_SMALL_MS are adopted at once. - A wall clock that is further ahead is adopted
 * after CLOCK_FOLLOW_MS: a change that is undone soon has no
 *   effect.
 * - Time never goes back, because events are numbered and replayed in its order. While it is ahead of the
 *   wall clock, it runs at half speed.
 *
 * The offset is stored with the boot id, so that a restart within a boot continues with the same time.
 */
#include "controller/core/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/state.h"

#define CLOCK_SMALL_MS  2000
#define CLOCK_FOLLOW_MS (5 * 60 * 1000)
#define CLOCK_KIND      "clock"

/* Moves the clock forward to the wall clock. Deadlines are timers of the boot clock, and are now due
 * sooner. */
static void follow(struct core_clock *clock, int64_t ahead_ms)
{
    clock->offset_ms += ahead_ms;
    clock->ahead_since_ms = 0;
    clock->has_stepped |= ahead_ms > CLOCK_SMALL_MS;
}

static void slow_down(struct core_clock *clock, int64_t boot_ms, int64_t lead_ms)
{
    int64_t half_ms = (boot_ms - clock->slowed_ms) / 2;
    clock->offset_ms -= half_ms < lead_ms ? half_ms : lead_ms;
    clock->slowed_ms += half_ms * 2;
}

/* Starts with the time stored in this boot, else with the wall clock; in both cases after the latest
 * event. */
static void set_first(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    struct core_clock *clock = &core->clock;
    int64_t now_ms = clock->is_kept ? boot_ms + clock->kept_ms : wall_ms;
    now_ms = now_ms > core->last_ms ? now_ms : core->last_ms + 1;
    clock->is_set = true;
    clock->offset_ms = now_ms - boot_ms;
    clock->slowed_ms = boot_ms;
}

int64_t core_clock_read(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    struct core_clock *clock = &core->clock;
    if (!clock->is_set)
        set_first(core, boot_ms, wall_ms);
    int64_t lead_ms = boot_ms + clock->offset_ms - wall_ms;
    if (lead_ms > 0)
        slow_down(clock, boot_ms, lead_ms);
    else
        clock->slowed_ms = boot_ms;
    if (lead_ms >= 0)
        clock->ahead_since_ms = 0;
    else if (-lead_ms <= CLOCK_SMALL_MS)
        follow(clock, -lead_ms);
    else if (clock->ahead_since_ms == 0)
        clock->ahead_since_ms = boot_ms;
    else if (boot_ms - clock->ahead_since_ms >= CLOCK_FOLLOW_MS)
        follow(clock, -lead_ms);
    clock->lead_ms = boot_ms + clock->offset_ms - wall_ms;
    return boot_ms + clock->offset_ms;
}

void core_clock_keep(struct core *core)
{
    struct core_clock *clock = &core->clock;
    int64_t change_ms = clock->offset_ms - clock->kept_ms;
    if (core->options.boot_id == NULL || (clock->is_kept && llabs(change_ms) <= CLOCK_SMALL_MS))
        return;
    _cleanup_buffer_ struct buffer text = { 0 };
    buffer_printf(&text, "%s %" PRId64, core->options.boot_id, clock->offset_ms);
    store_batch_put(core_batch(core)->changes, CLOCK_KIND, "", &text);
    clock->kept_ms = clock->offset_ms;
    clock->is_kept = true;
}

/* If the stored time is of another boot, or damaged, the wall clock is used. */
void core_clock_load(struct core *core, const uint8_t *bytes, size_t length)
{
    char text[128], boot_id[64];
    int64_t offset_ms = 0;
    (void)snprintf(
        text, sizeof(text), "%.*s", (int)(length < sizeof(text) ? length : 0), (const char *)bytes);
    if (sscanf(text, "%63s %" SCNd64, boot_id, &offset_ms) != 2 ||
        !text_equal(boot_id, core->options.boot_id))
        return;
    core->clock = (struct core_clock){ .is_kept = true, .kept_ms = offset_ms };
}

/* --- the turn --- */

void core_pass_at(struct core *core, int64_t now_ms)
{
    core->now_ms = now_ms;
    sched_pass(core->sched, now_ms);
    core->last_ms = now_ms;
    core->now_ms = 0;
}

/* Makes up for what the scheduler had to do before this time, each at its own time. Everything else due by
 * then comes first, because a pass must not start a job that has passed its deadline. */
static void catch_up(struct core *core, int64_t now_ms)
{
    int64_t due_ms = sched_next_ms(core->sched);
    while (due_ms < now_ms) {
        int64_t at_ms = due_ms > core->last_ms ? due_ms : core->last_ms + 1;
        if (at_ms >= now_ms)
            return;
        core->now_ms = at_ms;
        if (core_next_due(core) <= core_boot_at(core, at_ms))
            core_run_due(core);
        core_pass_at(core, at_ms);
        due_ms = sched_next_ms(core->sched);
    }
}

void core_begin(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    core->boot_ms = boot_ms;
    if (core->now_ms != 0)
        return;
    int64_t now_ms = core_clock_read(core, boot_ms, wall_ms);
    now_ms = now_ms > core->last_ms ? now_ms : core->last_ms + 1;
    catch_up(core, now_ms);
    core->now_ms = now_ms;
    core_clock_keep(core);
    if (core->clock.has_stepped)
        core_hook_stepped(core);
    core->clock.has_stepped = false;
}

int64_t core_now_ms(const struct core *core, int64_t wall_ms)
{
    if (core->now_ms != 0)
        return core->now_ms;
    int64_t now_ms = wall_ms + core->clock.lead_ms;
    return now_ms > core->last_ms ? now_ms : core->last_ms;
}

void core_arm(struct core *core, int64_t boot_ms)
{
    if (core->armed_ms != 0 && core->armed_ms <= boot_ms)
        return;
    core->armed_ms = boot_ms;
    core->effects.arm(core->effects.arg, boot_ms);
}

int64_t core_boot_at(const struct core *core, int64_t at_ms)
{
    return at_ms != TIME_NEVER ? at_ms - core->clock.offset_ms : TIME_NEVER;
}

/* SPDX-License-Identifier: MIT */
/*
 * The next sweep is scheduled when the last one has ended, so there is never more than one. Removed jobs that
 * are among the latest ended ones remain visible in memory until mgpud restarts.
 */
#include "controller/retention.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/utc.h"
#include "controller/controller.h"
#include "store/store_ended.h"

#define SWEEP_LEAST_MS 1000
#define SWEEP_MOST_MS  3600000
#define SWEEP_COUNT_MS 10000                // interval if the number of jobs is limited too
#define JUMP_MS        (24 * 3600 * 1000LL) // a wall clock that jumps ahead by this much is not trusted at once
#define SWEEPS_PER_AGE 10                   // a job exceeds its maximum age by at most 1/10

struct retention {
    struct controller *controller;
    struct event *timer;
    int64_t looked_wall_ms, looked_boot_ms; // the clocks at the last check
    int64_t paused_until_ms;                // boot clock; set after a jump of the wall clock
    bool is_sweeping;                       // the next sweep is scheduled when this one has ended
};

static bool is_wanted(const struct controller_options *options)
{
    return options->keep_jobs_ms > 0 || options->keep_max > 0;
}

static int64_t sweep_ms(const struct controller_options *options)
{
    int64_t ms = options->keep_jobs_ms > 0 ? options->keep_jobs_ms / SWEEPS_PER_AGE : SWEEP_MOST_MS;
    int64_t most = options->keep_max > 0 ? SWEEP_COUNT_MS : SWEEP_MOST_MS;
    return ms > most ? most : ms < SWEEP_LEAST_MS ? SWEEP_LEAST_MS : ms;
}

static void plan(struct retention *retention, int64_t ms)
{
    (void)event_add(retention->timer,
        &(struct timeval){ .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000) });
}

static void on_retired(void *arg, uint64_t jobs)
{
    struct retention *retention = arg;
    const struct controller_options *options = &retention->controller->options;
    retention->is_sweeping = false;
    if (jobs > 0)
        log_info("%" PRIu64 " old jobs removed from the store", jobs);
    if (is_wanted(options))
        plan(retention, sweep_ms(options));
}

/* A clock that is wrong by years would remove all jobs in one sweep. After a jump, nothing is therefore
 * removed for a while, which gives an administrator time to notice. */
static bool is_paused(struct retention *retention)
{
    int64_t wall_ms = clock_wall_ms(), boot_ms = clock_boot_ms();
    if (retention_is_jump(wall_ms - retention->looked_wall_ms, boot_ms - retention->looked_boot_ms)) {
        char now[32];
        utc_format(wall_ms, now, sizeof(now));
        log_warning("the clock jumped forward to %s: no old jobs are removed for 24 h", now);
        retention->paused_until_ms = boot_ms + JUMP_MS;
    }
    retention->looked_wall_ms = wall_ms;
    retention->looked_boot_ms = boot_ms;
    return boot_ms < retention->paused_until_ms;
}

bool retention_is_jump(int64_t wall_passed_ms, int64_t boot_passed_ms)
{
    return wall_passed_ms - boot_passed_ms > JUMP_MS;
}

static void on_due(evutil_socket_t fd, short events, void *arg)
{
    struct retention *retention = arg;
    const struct controller_options *options = &retention->controller->options;
    int64_t before_ms = options->keep_jobs_ms > 0 ? clock_wall_ms() - options->keep_jobs_ms : 0;
    uint64_t keep_max = options->keep_max > 0 ? options->keep_max : UINT64_MAX;
    if (is_paused(retention)) {
        plan(retention, sweep_ms(options));
        return;
    }
    retention->is_sweeping = true;
    _cleanup_free_ char *kept = core_awaited_jobs(retention->controller->core);
    store_retire(retention->controller->store, before_ms, keep_max, kept, on_retired, retention);
}

struct retention *retention_new(struct controller *controller, int64_t newest_ms)
{
    struct retention *retention = xcalloc(1, sizeof(*retention));
    retention->controller = controller;
    retention->looked_boot_ms = clock_boot_ms();
    retention->looked_wall_ms = newest_ms > 0 ? newest_ms : clock_wall_ms();
    retention->timer = evtimer_new(controller->loop, on_due, retention);
    if (is_wanted(&controller->options))
        plan(retention, sweep_ms(&controller->options));
    return retention;
}

void retention_replan(struct retention *retention)
{
    if (retention->is_sweeping)
        return;
    (void)event_del(retention->timer);
    if (is_wanted(&retention->controller->options))
        plan(retention, SWEEP_LEAST_MS);
}

void retention_free(struct retention *retention)
{
    if (retention == NULL)
        return;
    event_free(retention->timer);
    free(retention);
}

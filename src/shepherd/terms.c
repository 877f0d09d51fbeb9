/* SPDX-License-Identifier: MIT */
/*
 * The limit uses the boot clock, which cannot be set and also counts while the machine is suspended. An
 * adopting shepherd does not know whether the warning was sent, so it sends it again: two are better than
 * none.
 */
#include "shepherd/terms.h"

#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/memory.h"

void terms_read(struct terms *terms, int spool_fd)
{
    struct spool_terms changed;
    if (!spool_read_terms(spool_fd, &changed))
        return;
    terms->limit_ms = changed.time_limit_ms;
    terms->is_suspended = changed.is_suspended != 0;
}

void terms_open(struct terms *terms, const struct shepherd *shepherd, int64_t started_ms)
{
    *terms = (struct terms){
        .spec = &shepherd->spec,
        .started_ms = started_ms,
        .limit_ms = shepherd->spec.time_limit_ms,
        .timer_fd = -1,
    };
    terms_read(terms, shepherd->spool_fd);
}

void terms_close(struct terms *terms)
{
    closep(&terms->timer_fd);
}

static void arm(struct terms *terms, int64_t at_ms)
{
    struct itimerspec when = { .it_value = { .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 } };
    if (terms->timer_fd < 0)
        terms->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    (void)timerfd_settime(terms->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

enum terms_due terms_next(struct terms *terms)
{
    int64_t now_ms = clock_boot_ms(), ends_ms = terms->started_ms + terms->limit_ms;
    int64_t warn_ms = ends_ms - terms->spec->warn_before_ms;
    bool has_warning = terms->spec->warn_signal != 0 && !terms->is_warned;
    terms_close(terms);
    if (terms->limit_ms == 0)
        return DUE_NOTHING;
    if (now_ms >= ends_ms)
        return DUE_END;
    if (has_warning && now_ms < warn_ms) {
        arm(terms, warn_ms);
        return DUE_NOTHING;
    }
    terms->is_warned = true;
    arm(terms, ends_ms);
    return has_warning ? DUE_WARNING : DUE_NOTHING;
}

/* SPDX-License-Identifier: MIT */
#include "shepherd/processes/death_timer.h"

#include <signal.h>

#define MILLI 1000

void death_timer_open(struct death_timer *timer)
{
    struct sigevent death = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
    timer->is_open = timer_create(CLOCK_BOOTTIME, &death, &timer->timer) == 0;
}

void death_timer_set(const struct death_timer *timer, int64_t ms)
{
    const struct itimerspec last = { .it_value = { ms / MILLI, (ms % MILLI) * 1000000L } };
    if (timer->is_open)
        (void)timer_settime(timer->timer, 0, &last, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The agent updates the spool file "renewed" when it receives a message from the controller, without
 * notifying the shepherd. The shepherd reads the file when the known end of the lease is reached. The end of
 * the lease therefore depends only on this timer, not on the agent. It uses the boot clock, which also counts
 * while the machine is suspended.
 *
 * The controller gives the job to another node a margin after the end of the lease. The step is therefore
 * stopped before that, and no process of it is left when the lease ends.
 */
#include "shepherd/node_lease.h"

#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/memory.h"

#define GRACE_PART 10 // fraction of the lease that may be used as grace period (1/10)

static void reread(struct node_lease *lease, const struct shepherd *shepherd)
{
    int64_t until_ms;
    if (spool_read_renewed(shepherd->spool_fd, &until_ms) && until_ms > lease->until_ms)
        lease->until_ms = until_ms;
}

void node_lease_open(struct node_lease *lease, const struct shepherd *shepherd)
{
    const struct launch_spec *spec = &shepherd->spec;
    int64_t most_ms = spec->lease_ms / GRACE_PART;
    *lease = (struct node_lease){ .timer_fd = -1 };
    if (spec->lease_ms <= 0)
        return;
    lease->until_ms = spec->lease_until_ms > 0 ? spec->lease_until_ms : 1;
    lease->grace_ms = spec->grace_ms < most_ms ? spec->grace_ms : most_ms;
}

void node_lease_close(struct node_lease *lease)
{
    closep(&lease->timer_fd);
}

static void arm(struct node_lease *lease, int64_t at_ms)
{
    struct itimerspec when = { .it_value = { .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 } };
    if (lease->timer_fd < 0)
        lease->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    (void)timerfd_settime(lease->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

bool node_lease_is_over(struct node_lease *lease, const struct shepherd *shepherd)
{
    if (lease->until_ms == 0)
        return false;
    reread(lease, shepherd);
    if (clock_boot_ms() >= lease->until_ms - lease->grace_ms) {
        node_lease_close(lease);
        return true;
    }
    arm(lease, lease->until_ms - lease->grace_ms);
    return false;
}

int64_t node_lease_left_ms(const struct node_lease *lease)
{
    int64_t left_ms = lease->until_ms - clock_boot_ms();
    return left_ms > 0 ? left_ms : 0;
}

bool node_lease_has_passed(const struct shepherd *shepherd)
{
    struct node_lease lease;
    node_lease_open(&lease, shepherd);
    if (lease.until_ms == 0)
        return false;
    reread(&lease, shepherd);
    return node_lease_left_ms(&lease) == 0;
}

/* SPDX-License-Identifier: MIT */
/* The lease of an attempt: how long it may run without contact between its node and the controller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shepherd/shepherd.h"

struct node_lease {
    int64_t until_ms; // boot clock: by then no process of the step may be left; 0: no lease
    int64_t grace_ms; // the step is stopped this long before the end of the lease
    int timer_fd;     // or -1
};

void node_lease_open(struct node_lease *lease, const struct shepherd *shepherd);
void node_lease_close(struct node_lease *lease);

/* True if the step must be stopped now. Otherwise arms the timer for the next check. Allocates nothing. */
bool node_lease_is_over(struct node_lease *lease, const struct shepherd *shepherd);

/* How long the step has left if it is stopped now. */
int64_t node_lease_left_ms(const struct node_lease *lease);

/* True if the lease expired before anything ran. */
bool node_lease_has_passed(const struct shepherd *shepherd);

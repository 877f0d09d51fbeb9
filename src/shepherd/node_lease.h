/* SPDX-License-Identifier: MIT */
/* The lease that an attempt has of its node: so long it may run without a word of the controller. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shepherd/shepherd.h"

struct node_lease {
    int64_t until_ms; // boot clock: nothing of the step runs any more; 0: there is no lease
    int64_t grace_ms; // so long before, the step is told
    int timer_fd;     // or -1
};

void node_lease_open(struct node_lease *lease, const struct shepherd *shepherd);
void node_lease_close(struct node_lease *lease);

/* True when the step is to be ended now. Else arms the timer for the next look. Allocates nothing. */
bool node_lease_is_over(struct node_lease *lease, const struct shepherd *shepherd);

/* How long the step still has when it is ended now. */
int64_t node_lease_left_ms(const struct node_lease *lease);

/* Before anything ran: the lease is over already. */
bool node_lease_has_passed(const struct shepherd *shepherd);

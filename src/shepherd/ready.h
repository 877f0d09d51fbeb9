/* SPDX-License-Identifier: MIT */
/* In a job with several ranks, a rank's wait between its preparations and its verdict. */
#pragma once

#include "shepherd/shepherd.h"

/* Reports in the spool that the rank is prepared, and returns when the verdict is to be settled: the agent
 * commands it because all ranks are ready or because it has withdrawn this one. Rank 0 chooses the rendezvous
 * port. Sets `ret_failure` if the user's init is lost meanwhile, or the report cannot be written. */
void ready_wait(struct shepherd *shepherd, struct init_status *ret_failure);

/* The same for a prepared job. True if it was launched, and its init continues. False if it was withdrawn, or
 * its init or its agent has ended. */
bool ready_await_turn(struct shepherd *shepherd);

/* Handles a command that arrives before the step runs. True if the verdict is to be settled, or already
 * was. */
bool ready_take_command(struct shepherd *shepherd);

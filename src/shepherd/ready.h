/* SPDX-License-Identifier: MIT */
/* A rank of several stands still between its preparations and its verdict. */
#pragma once

#include "shepherd/shepherd.h"

/* Says in the spool that all is prepared, and returns when the verdict is to be settled: the agent says so
 * because all ranks are ready, or because it has taken this one back. Rank 0 chooses the port where the parts
 * meet. Fills in `ret_failure` when the user's
 * init is lost meanwhile, or nothing can be said. */
void ready_wait(struct shepherd *shepherd, struct init_status *ret_failure);

/* Takes one command that has come, before there is anything to obey it. True when the verdict is to be
 * settled, or was. */
bool ready_take_command(struct shepherd *shepherd);

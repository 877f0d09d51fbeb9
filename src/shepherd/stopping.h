/* SPDX-License-Identifier: MIT */
/* The note of a stop in the file "status": the step is being stopped, why, and until when. */
#pragma once

#include "shepherd/record.h"

/* To be called before the first signal of a stop is sent, and again after it was sent or when the grace
 * period becomes shorter. `kill_boot_ms`: time of SIGKILL. */
void stopping_note(const struct shepherd *shepherd, const struct ending *ending, int signal, bool is_sent,
    int64_t kill_boot_ms);

/* Restores the state of a stop that another shepherd began; false if none did. */
bool stopping_read(const struct shepherd *shepherd, struct ending *ending, struct init_stop *ret);

/* The time on the boot clock until which the processes of an exec step may continue after the init of the
 * job's main step has ended: the end of a stop in progress there. 0: no longer. */
int64_t stopping_read_host(const struct shepherd *shepherd);

/* SPDX-License-Identifier: MIT */
/* The note of a stop in the file "status": that a step is being stopped, why, and until when. */
#pragma once

#include "shepherd/record.h"

/* To be called before the first signal of a stop is sent, and again when it is out or its grace gets shorter.
 * `kill_boot_ms`: SIGKILL follows then. */
void stopping_note(const struct shepherd *shepherd, const struct ending *ending, int signal, bool is_sent,
    int64_t kill_boot_ms);

/* Restores the state of a stop that another shepherd began; false if none did. */
bool stopping_read(const struct shepherd *shepherd, struct ending *ending, struct init_stop *ret);

/* The time on the boot clock until which the processes of an exec step may run on after the init of the job's
 * own step: that of a stop that is under way there. 0: no longer. */
int64_t stopping_read_host(const struct shepherd *shepherd);

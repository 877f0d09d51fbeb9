/* SPDX-License-Identifier: MIT */
/* The spool file "stop": that a step is being stopped, and why, for an adopting shepherd. */
#pragma once

#include "shepherd/record.h"

/* To be called before the first signal of a stop is sent. Without space for the file the stop continues. */
void stopping_note(const struct shepherd *shepherd, const struct ending *ending, int signal);

/* Restores the state of a stop that another shepherd began. */
void stopping_read(const struct shepherd *shepherd, struct ending *ending);

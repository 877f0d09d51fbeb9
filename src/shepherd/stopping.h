/* SPDX-License-Identifier: MIT */
/* That a step is being stopped, and why, outlives its shepherd: the spool file "stop". */
#pragma once

#include "shepherd/record.h"

/* To be called before the first signal of a stop reaches anybody. Without space for the file the stop goes
 * on. */
void stopping_note(const struct shepherd *shepherd, const struct ending *ending, int signal);

/* Of a step that another shepherd was stopping: sets what that one knew. */
void stopping_read(const struct shepherd *shepherd, struct ending *ending);

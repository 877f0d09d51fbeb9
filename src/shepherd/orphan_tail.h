/* SPDX-License-Identifier: MIT */
/* The last lines of output of a command whose init was killed with it by the OOM killer. */
#pragma once

#include "shepherd/shepherd.h"
#include "shepherd/tail.h"

/* Reads them as the user, in a child; `text` is empty if there are none, or after two seconds. */
void orphan_tail_read(const struct shepherd *shepherd, char text[TAIL_SIZE]);

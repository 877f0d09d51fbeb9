/* SPDX-License-Identifier: MIT */
/* The last lines of a command whose init was killed with it, by the kernel for want of memory. */
#pragma once

#include "shepherd/shepherd.h"
#include "shepherd/tail.h"

/* Reads them as the user, in a child; an empty text when there are none, or not within two seconds. */
void orphan_tail_read(const struct shepherd *shepherd, char text[TAIL_SIZE]);

/* SPDX-License-Identifier: MIT */
/*
 * Space in RUN that is kept for what must not fail when RUN is full: verdicts, without which no attempt can
 * be taken back and no cancel ends, and renewals of leases, without which healthy jobs end.
 */
#pragma once

#include <stdbool.h>

struct run_reserve;

/* A file of this directory; one of an agent before us is taken over. Without space it begins empty. */
struct run_reserve *run_reserve_open(int dirfd);
void run_reserve_close(struct run_reserve *reserve); // the file stays. NULL is fine

/* After a failure with this errno: true when some space was given back and it is worth trying again. */
bool run_reserve_use(struct run_reserve *reserve, int r);

/* Takes back what was used, as far as there is room. Cheap when nothing is missing. */
void run_reserve_fill(struct run_reserve *reserve);

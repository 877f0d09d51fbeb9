/* SPDX-License-Identifier: MIT */
/*
 * Reserved space in RUN for writes that must not fail when RUN is full: verdicts, without which attempts
 * cannot be withdrawn and cancels do not complete, and lease renewals, without which healthy jobs end.
 */
#pragma once

#include <stdbool.h>

struct run_reserve;

/* A file in this directory; reuses that of an earlier agent. Initially empty if there is no space. */
struct run_reserve *run_reserve_open(int dirfd);
void run_reserve_close(struct run_reserve *reserve); // the file is kept. NULL is allowed

/* After a failure with this errno: true if some space was released and a retry may succeed. */
bool run_reserve_use(struct run_reserve *reserve, int r);

/* Restores the reserve as far as there is space. Cheap if nothing is missing. */
void run_reserve_fill(struct run_reserve *reserve);

/* SPDX-License-Identifier: MIT */
/* Nodes that cannot run a job although they have what it requests: its user does not exist there, for
 * example. */
#pragma once

#include <stdbool.h>

struct core;
struct core_entry;

/*
 * The node refused the job's current attempt, which never ran; `text` is why. Requeues the job for the other
 * nodes and returns true; false if none of them could run it: the attempt is to be ended. Not stored: after a
 * restart of mgpud the node may be tried once more.
 */
bool core_leave_out(struct core *core, struct core_entry *entry, const char *node, const char *text);

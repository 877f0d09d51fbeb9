/* SPDX-License-Identifier: MIT */
/*
 * A SQLite VFS over the default one that lets the Nth change of a file go wrong. Changes are writes, syncs,
 * truncations and removals, of all files together.
 */
#pragma once

#include <stdbool.h>

enum fault {
    FAULT_NONE,
    FAULT_EIO,         // this one fails, the later ones work
    FAULT_UNREADABLE,  // this read fails, counted apart, and all later ones
    FAULT_READ_ONLY,   // from this one on the file system is read-only
    FAULT_FULL,        // this one, or else the next write, finds no space; the later ones do
    FAULT_FULL_ALWAYS, // and from then on every write
    FAULT_DIE,         // the process is dead: this and all later changes fail and change nothing
    FAULT_TORN,        // likewise, after the first half of the write
    FAULT_POWER_CUT,   // likewise, and what was not synced is kept, lost or torn at random
};

/* Makes the shim SQLite's default VFS. */
void fault_vfs_install(void);

/* The `countdown`th change from now on goes wrong. FAULT_NONE only counts. */
void fault_vfs_arm(enum fault fault, unsigned countdown, unsigned seed);

/* Everything works again. Returns true when the fault happened. */
bool fault_vfs_disarm(void);

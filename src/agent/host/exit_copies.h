/* SPDX-License-Identifier: MIT */
/* Exit records on disk, in STATE/exits: a shepherd copies its record there if it is not fetched, or if it
 * cannot be written to the spool. */
#pragma once

#include "base/error.h"
#include "base/spool.h"

/* Recreates the spool entry of an ended step from its copy. -ENOENT: there is none. */
int exit_copy_restore(int exits_fd, int spool_fd, const struct spool_id *id, struct error *err);

/* The same for every copy whose step has no exit record in the spool. */
int exit_copies_restore(int exits_fd, int spool_fd, struct error *err);

/* No effect if there is none. */
int exit_copy_remove(int exits_fd, const struct spool_id *id);

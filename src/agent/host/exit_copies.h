/* SPDX-License-Identifier: MIT */
/* Exit records on disk, in STATE/exits: a shepherd copies its record there when nobody fetches it, or when
 * the spool cannot take it. */
#pragma once

#include "base/error.h"
#include "base/spool.h"

/* Makes the spool entry of a step that is over anew from its copy. -ENOENT: there is none. */
int exit_copy_restore(int exits_fd, int spool_fd, const struct spool_id *id, struct error *err);

/* The same for every copy whose step has no exit record in the spool. */
int exit_copies_restore(int exits_fd, int spool_fd, struct error *err);

/* Harmless when there is none. */
int exit_copy_remove(int exits_fd, const struct spool_id *id);

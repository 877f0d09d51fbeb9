/* SPDX-License-Identifier: MIT */
/* Steps that start before they have their GPUs (base/node/open_gate.h). */
#pragma once

#include <stdint.h>

#include "agent/launch/launcher.h"
#include "job/launch.h"

/* Checks that a step with this spec can start early here. -ENOTSUP with a sentence. */
int early_check(const struct launch_spec *spec, bool is_guarding, struct error *err);

/* Creates the files of such a step in its entry: the mark that it lacks its GPUs, and the files for its init.
 * Returns 0 or a negative errno. */
int early_make_entry(int dirfd);

/* Grants the step the GPUs of its spec: first in its device filter, then to its waiting processes, which
 * continue. Idempotent. Returns 0, or a negative errno with a sentence: it has none of them, except after
 * -ENOTRECOVERABLE, when this is unknown. */
int launcher_grant(const struct launcher *launcher, const struct spool_id *id, struct error *err);

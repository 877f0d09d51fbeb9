/* SPDX-License-Identifier: MIT */
/* Steps that start before they have their GPUs (base/node/open_gate.h). */
#pragma once

#include <stdint.h>

#include "agent/launch/launcher.h"
#include "job/launch.h"

/* Checks that a step with this spec can start early here. -ENOTSUP with a sentence. */
int early_check(const struct launch_spec *spec, bool is_guarding, struct error *err);

/* Makes the files of such a step in its entry: that it is without its GPUs, and what its init needs. Returns
 * 0 or a negative errno. */
int early_make_entry(int dirfd);

/* Gives the step the GPUs of its spec: in its device filter first, and then its processes that wait for them
 * go on. Idempotent. Returns 0, or a negative errno with a sentence: it has none of them, except with
 * -ENOTRECOVERABLE, when nobody knows. */
int launcher_grant(const struct launcher *launcher, const struct spool_id *id, struct error *err);

/* SPDX-License-Identifier: MIT */
/* Settings of the scheduler, and limits of single users and groups. */
#pragma once

#include "base/options.h"
#include "controller/config/options.h"

/* The target of the table begins with a pointer to the options. */
extern const struct option_row sched_rows[];

/* Sets a limit or the weight of one user or group: "max-jobs", "max-gpus", "max-gpu-hours", "shares"; the
 * "department" of a group; or the "shares" of a department. */
int settings_set_account(struct controller_options *options, enum account_kind kind, const char *name,
    const char *key, const char *value, struct error *err);

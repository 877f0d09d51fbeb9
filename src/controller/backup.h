/* SPDX-License-Identifier: MIT */
/* mgpud --backup and --restore: the store, the keys of the cluster and the settings as one file. */
#pragma once

#include "base/error.h"
#include "controller/controller.h"

/* Writes a new file PATH (0600), while mgpud runs or not. -EEXIST: it is there already. */
int backup_write(const struct controller_options *options, const char *path, struct error *err);

/*
 * Puts what the backup PATH holds into the state directory, which no mgpud may use (-EBUSY). What was there
 * is moved aside, not removed. Settings are only written beside the store, where they differ from those on
 * this machine. Prints what it did and what comes next.
 */
int backup_restore(
    const struct controller_options *options, bool is_root, const char *path, struct error *err);

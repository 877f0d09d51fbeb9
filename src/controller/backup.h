/* SPDX-License-Identifier: MIT */
/* mgpud --backup and --restore: the store, the cluster's keys and the settings in one file. */
#pragma once

#include "base/error.h"
#include "controller/controller.h"

/* Writes a new file PATH (0600); mgpud may be running. -EEXIST: the file exists. */
int backup_write(const struct controller_options *options, const char *path, struct error *err);

/*
 * Restores the backup PATH into the state directory, which no mgpud may use (-EBUSY). Existing files are
 * moved aside, not removed. Settings are only written beside the store, if they differ from those of this
 * machine. Prints what was done and the next steps.
 */
int backup_restore(
    const struct controller_options *options, bool is_root, const char *path, struct error *err);

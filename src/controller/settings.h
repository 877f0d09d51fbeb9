/* SPDX-License-Identifier: MIT */
/* mgpud's settings: defaults by who starts it, then the file, then the command line. One table serves both.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "controller/controller.h"

/* Fills every field of `options` for a start as root or as a normal user. -ENOENT: a rootless start without
 * HOME. */
int settings_default(struct controller_options *options, bool is_root, struct error *err);

/*
 * Reads argv over the defaults, with the file named by --config (or /etc/mgpu/mgpu.yaml when it exists and we
 * are root) in between. `ret_fsck` is set by --fsck. Returns 1 when help or version was printed and nothing
 * else is to be done.
 */
int settings_read(
    int argc, char **argv, struct controller_options *options, bool *ret_fsck, struct error *err);

/* One key of the file: the long option of that name. */
int settings_set(struct controller_options *options, const char *key, const char *value, struct error *err);

/* config.c: a YAML file with one mapping of keys to scalars. Errors name file and line. */
int config_read(const char *path, struct controller_options *options, struct error *err);

void settings_clear(struct controller_options *options);

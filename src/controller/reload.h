/* SPDX-License-Identifier: MIT */
/* Changes of settings while mgpud runs. */
#pragma once

#include "controller/controller.h"

/* The core's settings. `accounts` still belongs to `controller`. */
struct core_options reload_core_options(const struct controller *controller);

/* Logs settings in the files that have no effect. */
void reload_warn(const struct controller_options *options);

/*
 * Reads files and command line again. Applies and logs each change that is possible while mgpud runs; for
 * others, logs that they require a restart. If a file has an error, nothing is changed: returns a negative
 * errno and logs the error.
 */
int reload(struct controller *controller, int argc, char **argv);

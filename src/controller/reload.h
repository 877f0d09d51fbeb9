/* SPDX-License-Identifier: MIT */
/* Settings taken up while mgpud runs. */
#pragma once

#include "controller/controller.h"

/* The settings that the core works by. The accounts stay those of `controller`. */
struct core_options reload_core_options(const struct controller *controller);

/* Logs what the files say and has no effect. */
void reload_warn(const struct controller_options *options);

/*
 * Reads files and command line again. What can be changed in a running mgpud is changed, and each change is
 * logged; of the rest the log says that it needs a new start. When there is a mistake in a file nothing is
 * changed at all: a negative errno, and the sentence is in the log.
 */
int reload(struct controller *controller, int argc, char **argv);

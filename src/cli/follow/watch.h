/* SPDX-License-Identifier: MIT */
/* Lists that are updated periodically (-w). */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/options/call.h"

typedef int (*watch_show_fn)(void *arg, FILE *out, struct error *err);

/* The value of -w, NULL for the default of two seconds. */
int watch_parse(const char *value, int64_t *ret_ms, struct error *err);

/* Calls `show` repeatedly until q is typed (0) or a signal ends it, or until it fails for longer than a
 * restart of mgpud takes. */
int watch_run(struct call *call, int64_t interval_ms, watch_show_fn show, void *arg, struct error *err);

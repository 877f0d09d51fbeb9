/* SPDX-License-Identifier: MIT */
/* mgpud --fsck: the findings of a check of the store, as lines on standard output. */
#pragma once

#include "base/error.h"
#include "controller/controller.h"

/* Returns the number of findings; mgpud may be running. */
int store_report(const struct controller_options *options, struct error *err);

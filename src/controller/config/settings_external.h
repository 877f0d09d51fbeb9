/* SPDX-License-Identifier: MIT */
/* Settings for external processes, and for when a shared GPU counts as full. */
#pragma once

#include "base/options.h"

/* The target of the table begins with a pointer to the options. */
extern const struct option_row external_rows[];

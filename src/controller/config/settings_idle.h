/* SPDX-License-Identifier: MIT */
/* Settings for jobs that do not use their GPUs. */
#pragma once

#include "base/options.h"

/* The target of the table begins with a pointer to the options. */
extern const struct option_row idle_rows[];

/* SPDX-License-Identifier: MIT */
/* Settings for jobs that start before their GPUs are free. */
#pragma once

#include "base/options.h"

extern const struct option_row early_rows[];

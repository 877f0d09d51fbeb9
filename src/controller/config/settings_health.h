/* SPDX-License-Identifier: MIT */
/* Settings for faulty GPUs: a table of mgpud's options and configuration keys. */
#pragma once

#include "base/options.h"

extern const struct option_row health_rows[];

/* SPDX-License-Identifier: MIT */
/* Settings for unreachable nodes. */
#pragma once

#include "base/options.h"

extern const struct option_row loss_rows[];

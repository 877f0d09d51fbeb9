/* SPDX-License-Identifier: MIT */
/* Settings of a controller that is one of several. */
#pragma once

#include "base/options.h"

extern const struct option_row cluster_rows[];

/* SPDX-License-Identifier: MIT */
/* The settings about what jobs tell people outside. */
#pragma once

#include "base/options.h"

/* The table's target begins with a pointer to the options. */
extern const struct option_row notifications_rows[];

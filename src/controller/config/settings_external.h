/* SPDX-License-Identifier: MIT */
/* The settings about others on the GPUs, and about how full a shared GPU may be. */
#pragma once

#include "base/options.h"

/* The table's target begins with a pointer to the options. */
extern const struct option_row external_rows[];

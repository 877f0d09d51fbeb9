/* SPDX-License-Identifier: MIT */
/* The settings about what jobs tell people outside. */
#pragma once

#include "base/options.h"

#define NOTICES_PER_HOUR 60U // of one user, when nobody says otherwise
#define NOTICE_TIME_MS   30000

/* The table's target begins with a pointer to the options. */
extern const struct option_row notices_rows[];

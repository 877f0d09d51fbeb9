/* SPDX-License-Identifier: MIT */
/* Settings for notifications. */
#pragma once

#include "base/options.h"

/* The target of the table begins with a pointer to the options. */
extern const struct option_row notifications_rows[];

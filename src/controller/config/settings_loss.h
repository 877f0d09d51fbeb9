/* SPDX-License-Identifier: MIT */
/* The settings about nodes of which nothing is heard. */
#pragma once

#include "base/options.h"

extern const struct option_row loss_rows[];

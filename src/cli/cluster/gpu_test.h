/* SPDX-License-Identifier: MIT */
#pragma once

#include "cli/options/call.h"

/* mgpu gpu test, an action of mgpu gpu. */
extern const struct command command_gpu_test;

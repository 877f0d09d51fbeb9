/* SPDX-License-Identifier: MIT */
/* mgpu gpu lock|unlock: which users may open the device nodes of this machine's GPUs. */
#pragma once

#include "cli/options/call.h"

extern const struct command command_gpu_lock;
extern const struct command command_gpu_unlock;

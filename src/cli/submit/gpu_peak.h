/* SPDX-License-Identifier: MIT */
/* How much GPU memory earlier jobs with the same command used. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/options/call.h"

#define GPU_PEAK_AUTO "auto" // of gpu_mem in a request: to be settled before it is sent

/*
 * Settles the GPU memory of a request by the caller's last jobs with this command that succeeded. "auto"
 * becomes their peak plus 10 %; -ENODATA: there is none. If the size is more than 1.5 times their peak,
 * prints the peak.
 */
int gpu_peak_settle(struct call *call, const json_t *command, json_t *request, struct error *err);

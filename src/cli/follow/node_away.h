/* SPDX-License-Identifier: MIT */
/* What is awaited while the output of a job cannot be read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/options/call.h"

/* Reports that the node of this rank of the job is unreachable and since when, and that its output is
 * awaited. False if it is not, or if this is unknown. */
bool node_away_report(struct call *call, const char *job, size_t rank);

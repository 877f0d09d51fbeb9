/* SPDX-License-Identifier: MIT */
/* Why a job waits or how it ended, with the fact first, for a column of a narrow terminal. */
#pragma once

#include <jansson.h>

/* Gives each job whose sentence begins with something else than the fact a member "brief", which the column
 * `why` then shows: "behind 7 (8 GPUs)", "after job 47 (ok)", "4 of 8 are free". */
void why_brief_add(json_t *jobs);

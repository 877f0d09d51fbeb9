/* SPDX-License-Identifier: MIT */
/* What a job has said of itself, from the spool into its usage. */
#pragma once

#include <stdbool.h>

#include "job/usage.h"

/* `dirfd`: the attempt's spool directory. False, with nothing touched, when nothing was said. */
bool usage_reported_read(int dirfd, struct job_usage *usage);

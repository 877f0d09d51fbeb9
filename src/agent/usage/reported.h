/* SPDX-License-Identifier: MIT */
/* Adds a job's status reports from the spool to its usage. */
#pragma once

#include <stdbool.h>

#include "job/usage.h"

/* `dirfd`: the attempt's spool directory. False, without any change, if there are none. */
bool usage_reported_read(int dirfd, struct job_usage *usage);

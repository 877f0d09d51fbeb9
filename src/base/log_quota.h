/* SPDX-License-Identifier: MIT */
/* Rate limit for log lines that untrusted peers can cause: at most one per second, with the number of
 * suppressed ones. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct log_quota {
    int64_t last_ms; // boot clock; 0: no line yet
    unsigned held_back;
};

/* True if a line may be written now. First logs how many lines about `what` were suppressed. */
bool log_quota_take(struct log_quota *quota, const char *what);

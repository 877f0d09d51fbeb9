/* SPDX-License-Identifier: MIT */
/* Lines that strangers can cause: at most one a second, and how many there would have been besides. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct log_quota {
    int64_t last_ms; // on the boot clock; 0: nothing yet
    unsigned held_back;
};

/* True when a line may be written now. Says first how many were held back, of what `what` names. */
bool log_quota_take(struct log_quota *quota, const char *what);

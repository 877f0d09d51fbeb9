/* SPDX-License-Identifier: MIT */
#include "base/log_quota.h"

#include "base/clock.h"
#include "base/log.h"

#define EVERY_MS 1000

bool log_quota_take(struct log_quota *quota, const char *what)
{
    int64_t now_ms = clock_boot_ms();
    if (quota->last_ms != 0 && now_ms - quota->last_ms < EVERY_MS) {
        quota->held_back++;
        return false;
    }
    if (quota->held_back > 0)
        log_info("%s: %u more like this", what, quota->held_back);
    *quota = (struct log_quota){ .last_ms = now_ms };
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "base/allowance.h"

#define WHOLE 100

static int64_t used_at(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us)
{
    int64_t used = allowance->used - (now_us - allowance->at_us) * rate->percent,
            least = -rate->most_us * WHOLE;
    return used > least ? used : least;
}

void allowance_spend(
    struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us, int64_t used_us)
{
    int64_t used = used_at(allowance, rate, now_us) + used_us * WHOLE, most = rate->debt_us * WHOLE;
    *allowance = (struct allowance){ .used = used < most ? used : most, .at_us = now_us };
}

bool allowance_is_left(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us)
{
    return used_at(allowance, rate, now_us) < 0;
}

bool allowance_is_full(const struct allowance *allowance, const struct allowance_rate *rate, int64_t now_us)
{
    return used_at(allowance, rate, now_us) <= -rate->most_us * WHOLE;
}

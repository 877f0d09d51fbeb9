/* SPDX-License-Identifier: MIT */
#include "job/external.h"

#include <stddef.h>
#include <string.h>

static const char *const names[EXTERNAL_POLICIES] = {
    [EXTERNAL_AVOID] = "avoid",
    [EXTERNAL_FIT_AROUND] = "fit-around",
    [EXTERNAL_IGNORE] = "ignore",
};

const char *external_policy_name(enum external_policy policy)
{
    return (unsigned)policy < EXTERNAL_POLICIES ? names[policy] : "invalid";
}

enum external_policy external_policy_find(const char *name)
{
    unsigned policy = 0;
    while (policy < EXTERNAL_POLICIES && (name == NULL || strcmp(names[policy], name) != 0))
        policy++;
    return (enum external_policy)policy;
}

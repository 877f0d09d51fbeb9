/* SPDX-License-Identifier: MIT */
#include "job/foreign.h"

#include <stddef.h>
#include <string.h>

static const char *const names[FOREIGN_POLICIES] = {
    [FOREIGN_AVOID] = "avoid",
    [FOREIGN_FIT_AROUND] = "fit-around",
    [FOREIGN_IGNORE] = "ignore",
};

const char *foreign_policy_name(enum foreign_policy policy)
{
    return (unsigned)policy < FOREIGN_POLICIES ? names[policy] : "invalid";
}

enum foreign_policy foreign_policy_find(const char *name)
{
    unsigned policy = 0;
    while (policy < FOREIGN_POLICIES && (name == NULL || strcmp(names[policy], name) != 0))
        policy++;
    return (enum foreign_policy)policy;
}

/* SPDX-License-Identifier: MIT */
/* What follows for a GPU that a process uses which mgpu did not start. */
#pragma once

enum external_policy {
    EXTERNAL_AVOID,      // it is given to nobody
    EXTERNAL_FIT_AROUND, // shares get what is left of its memory; nobody gets all of it
    EXTERNAL_IGNORE,     // as if nobody were there
    EXTERNAL_POLICIES,   // and no policy at all
};

/* "avoid", "fit-around", "ignore". */
const char *external_policy_name(enum external_policy policy);

/* EXTERNAL_POLICIES when there is none of that name; `name` may be NULL. */
enum external_policy external_policy_find(const char *name);

/* SPDX-License-Identifier: MIT */
/* What follows for a GPU that a process uses which mgpu did not start. */
#pragma once

enum foreign_policy {
    FOREIGN_AVOID,      // it is given to nobody
    FOREIGN_FIT_AROUND, // shares get what is left of its memory; nobody gets all of it
    FOREIGN_IGNORE,     // as if nobody were there
    FOREIGN_POLICIES,   // and no policy at all
};

/* "avoid", "fit-around", "ignore". */
const char *foreign_policy_name(enum foreign_policy policy);

/* FOREIGN_POLICIES when there is none of that name; `name` may be NULL. */
enum foreign_policy foreign_policy_find(const char *name);

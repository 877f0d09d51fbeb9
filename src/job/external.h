/* SPDX-License-Identifier: MIT */
/* Policies for GPUs that are used by external processes. */
#pragma once

enum external_policy {
    EXTERNAL_AVOID,      // allocated to no job
    EXTERNAL_FIT_AROUND, // shared jobs may use the remaining memory; no job gets the whole GPU
    EXTERNAL_IGNORE,     // external processes are ignored
    EXTERNAL_POLICIES,   // also: not a policy
};

/* "avoid", "fit-around", "ignore". */
const char *external_policy_name(enum external_policy policy);

/* EXTERNAL_POLICIES if there is no such name; `name` may be NULL. */
enum external_policy external_policy_find(const char *name);

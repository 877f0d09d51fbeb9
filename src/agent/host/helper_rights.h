/* SPDX-License-Identifier: MIT */
/* What each helper process of the agent may do: one table. */
#pragma once

enum helper_kind {
    HELPER_USERS,
    HELPER_LOG,
    HELPER_PORT,
    HELPER_API,
    HELPER_POST, // a notification to a URL
    HELPER_TELL, // any other notification
    HELPER_GPUS,
    HELPER_ROCM,
    HELPER_PARK,
    HELPER_GPU_TEST,
};

/* In a child that was forked for it: sets its name, and gives up what the table does not have. Without root,
 * only the filter of system calls is left to be given. */
void helper_enter(enum helper_kind kind);

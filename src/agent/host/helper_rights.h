/* SPDX-License-Identifier: MIT */
/* The rights of each helper process of the agent: one table. */
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

/* In a child forked for it: sets its name, and drops the rights that the table does not list. Without root,
 * only the filter of system calls can be applied. */
void helper_enter(enum helper_kind kind);

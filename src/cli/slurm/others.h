/* SPDX-License-Identifier: MIT */
/* The options of sacctmgr, sshare, sprio, sdiag, sstat, sattach and sbcast. */
#pragma once

#include <stdbool.h>

struct others {
    const char *format, *jobs, *users, *accounts, *partitions, *sort;
    bool is_headless, is_parsable, has_last_delimiter, is_all, is_users_alone, is_help_format, is_forced,
        is_preserving;
};

/* SPDX-License-Identifier: MIT */
/* The log directory of a user below a shared one. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* Creates DIR (0711) and DIR/UID (0700, owned by that user) if missing. Requires root. Blocks if the file
 * system hangs. */
int user_logs_make(const char *dir, uid_t uid, gid_t gid, struct error *err);

/* SPDX-License-Identifier: MIT */
/* The directory of a user's logs below one that all users share. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* Makes DIR (0711) and DIR/UID (0700, of that user) where they are missing. As root. A file system that hangs
 * blocks the call. */
int user_logs_make(const char *dir, uid_t uid, gid_t gid, struct error *err);

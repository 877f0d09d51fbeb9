/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* Creates a listening unix socket at `path` with this mode, replacing one left behind by a dead daemon. The
 * caller holds the lock of its directory. */
int listen_unix(const char *path, mode_t mode, int *ret_fd, struct error *err);

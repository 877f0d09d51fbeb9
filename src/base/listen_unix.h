/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* A listening unix socket at `path` with this mode; one left behind by a daemon that died is replaced. The
 * caller has the lock of its directory. */
int listen_unix(const char *path, mode_t mode, int *ret_fd, struct error *err);

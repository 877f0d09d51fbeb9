/* SPDX-License-Identifier: MIT */
/* mgpud --stop, mgpud --reload: signals to the mgpud that uses a directory. */
#pragma once

#include "base/error.h"

/* Sends SIGTERM to the mgpud with this run directory and returns when it has exited. -ESRCH: there is none;
 * -ETIMEDOUT: it has not exited in time. */
int running_stop(const char *run_dir, struct error *err);

/* Sends it SIGHUP: it reads its configuration files again. The caller has checked that they can be read. */
int running_reload(const char *run_dir, struct error *err);

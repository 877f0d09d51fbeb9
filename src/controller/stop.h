/* SPDX-License-Identifier: MIT */
/* mgpud --stop: ends the mgpud that runs with a directory. */
#pragma once

#include "base/error.h"

/* Sends SIGTERM to the mgpud whose run directory that is and returns when it has left. -ESRCH: there is none;
 * -ETIMEDOUT: it has not left in time. */
int stop_running(const char *run_dir, struct error *err);

/* SPDX-License-Identifier: MIT */
/* mgpud --stop: ends the mgpud that uses a directory. */
#pragma once

#include "base/error.h"

/* Sends SIGTERM to the mgpud with this run directory and returns when it has exited. -ESRCH: there is none;
 * -ETIMEDOUT: it has not exited in time. */
int stop_running(const char *run_dir, struct error *err);

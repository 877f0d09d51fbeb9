/* SPDX-License-Identifier: MIT */
/* Checks that a program of mgpu can be executed on this machine. */
#pragma once

#include "base/error.h"

/* Runs `PATH --version`, for at most some seconds. Negative, with a sentence, if it cannot be executed, is
 * killed, or exits with a status other than 0. */
int program_check(const char *path, struct error *err);

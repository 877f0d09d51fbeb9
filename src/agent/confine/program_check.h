/* SPDX-License-Identifier: MIT */
/* Whether a program of ours can be executed on this machine. */
#pragma once

#include "base/error.h"

/* Runs `PATH --version`, for at most some seconds. Less than 0, with a sentence, if it cannot be executed, is
 * killed, or exits with another status than 0. */
int program_check(const char *path, struct error *err);

/* SPDX-License-Identifier: MIT */
/* Warnings about the preparation of a job's command: --venv, --conda, --module. */
#pragma once

#include "cli/submit/submit.h"

/* Warns about each of them that is not on this machine. Runs `sh` for --conda and --module. */
void submit_check_setup(const struct submit_options *options);

/* SPDX-License-Identifier: MIT */
/* Checks the fields of a request about time limits, requeues and retries. */
#pragma once

#include "job/ask.h"

int ask_check_tries(const struct job_ask *ask, struct error *err);

/* SPDX-License-Identifier: MIT */
/* The part of a request that says what happens when its time is up or it fails. */
#pragma once

#include "job/ask.h"

int ask_check_tries(const struct job_ask *ask, struct error *err);

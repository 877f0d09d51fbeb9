/* SPDX-License-Identifier: MIT */
/* The settings of the scheduler as an event of the journal contains them: one "key=value" per line. */
#pragma once

#include "base/error.h"
#include "sched/sched.h"

/*
 * Reads the settings from `text` into *ret; settings that it does not contain have their defaults. Accounts
 * ("account=...") are ignored. -EPROTO: an unknown policy or placement.
 */
int settings_text_read(const char *text, struct sched_settings *ret, struct error *err);

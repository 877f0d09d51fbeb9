/* SPDX-License-Identifier: MIT */
/* The lowest uid of a person's account: UID_MIN of login.defs(5). */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define UID_MIN_USUAL 1000 // where login.defs does not say

/* UID_MIN in the text of login.defs. */
uint32_t uid_min_of(const char *text);

/* The value of an option: a number, or "auto" for UID_MIN of this machine. */
int uid_min_parse(const char *value, const char *what, uint32_t *ret, struct error *err);

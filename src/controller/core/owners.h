/* SPDX-License-Identifier: MIT */
/* Which user a number was when a job was submitted. */
#pragma once

#include "controller/core/core.h"

void core_note_owner(struct core *core, uint32_t uid, uint64_t job); // it submits this one
void core_load_owners(struct core *core, const char *key, const uint8_t *bytes, size_t length);
void core_clear_owners(struct core *core);
/* What the number is called on this machine now; NULL: it has no name here. The caller frees it. */
char *core_user_name(struct core *core, uint32_t uid);

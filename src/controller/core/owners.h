/* SPDX-License-Identifier: MIT */
/* User names and groups of uids at the time of their submits. */
#pragma once

#include "controller/core/core.h"

void core_note_owner(struct core *core, uint32_t uid, uint64_t job); // this uid submits this job
void core_load_owners(struct core *core, const char *key, const uint8_t *bytes, size_t length);
void core_clear_owners(struct core *core);
/* The group that jobs of this caller count for, as in struct job's `account`. */
uint32_t core_account(const struct core *core, const struct identity *who);
/* The current name of the uid on this machine; NULL: none. The caller frees it. */
char *core_user_name(struct core *core, uint32_t uid);

/* SPDX-License-Identifier: MIT */
/* Permission checks with error messages. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

int core_check_control(const struct core *core, const struct identity *who, uint64_t id,
    const struct core_entry *entry, struct error *err);
/* `what` completes "only operators may"; `until_ms` 0: no end. */
int core_check_admin(const struct core *core, const struct identity *who, const char *what, int64_t until_ms,
    struct error *err);

/* The bit of a hold by this user. */
uint32_t core_hold_of(const struct identity *who, const struct job *job);

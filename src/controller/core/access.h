/* SPDX-License-Identifier: MIT */
/* Who may do what, as a sentence for who may not. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

int core_check_control(const struct core *core, const struct identity *who, uint64_t id,
    const struct core_entry *entry, struct error *err);
/* `what` completes "only operators may"; `until_ms` 0: it has no end. */
int core_check_admin(const struct core *core, const struct identity *who, const char *what, int64_t until_ms,
    struct error *err);

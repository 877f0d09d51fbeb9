/* SPDX-License-Identifier: MIT */
/* Settings at the start and when they change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct core;

void core_configure_accounts(struct core *core);
const char *core_department_name(const struct core *core, uint32_t number); // NULL: it is gone
/* If the cost of parking measured by tests is no longer `before_ms`: updates the scheduler, and returns
 * true. */
bool core_configure_park_cost(struct core *core, int64_t before_ms);
void core_note_settings(struct core *core, bool is_live); // in the journal; live: changed while running

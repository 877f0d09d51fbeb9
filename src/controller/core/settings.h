/* SPDX-License-Identifier: MIT */
/* Settings at the start and when they change. */
#pragma once

#include <stdbool.h>

struct core;

void core_configure_accounts(struct core *core);
void core_note_settings(struct core *core, bool is_live); // in the journal; live: changed while running

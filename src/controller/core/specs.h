/* SPDX-License-Identifier: MIT */
/* Specs of jobs that will start soon. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* The array, for an element, which runs the array's spec. */
struct core_entry *core_spec_owner(struct core_entry *entry);
/* Keeps a reference until launch. Encoded, it takes a quarter of the memory. */
void core_keep_spec(struct core *core, struct core_entry *entry, struct spec_bytes *spec);
void core_drop_spec(struct core *core, struct core_entry *entry);
bool core_has_room_for_specs(const struct core *core);

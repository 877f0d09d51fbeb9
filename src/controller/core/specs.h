/* SPDX-License-Identifier: MIT */
/* Specs of jobs that will start soon. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* A job's spec while it waits to be launched, encoded: so it takes a quarter of the memory. */
struct kept_spec {
    size_t length;
    uint8_t bytes[];
};

/* An element runs what its array was asked to run. */
struct core_entry *core_spec_owner(struct core_entry *entry);
/* Takes it over; NULL: the store has lost it. */
void core_keep_spec(struct core *core, struct core_entry *entry, struct job_spec *spec);
void core_drop_spec(struct core *core, struct core_entry *entry);
bool core_has_room_for_specs(const struct core *core);
/* False for one that is over a limit, or that the store has lost: it is sent without its request, and the
 * agent refuses it. */
bool core_decode_spec(const struct kept_spec *kept, struct job_spec *ret);

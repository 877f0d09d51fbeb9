/* SPDX-License-Identifier: MIT */
/* Arrays of structs whose first member is their uint64_t id, in order of their ids. A restored store leaves
 * out millions of ids, so that no array has a place for each. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* NULL if none has the id. */
void *by_id_find(const void *items, size_t count, size_t size, uint64_t id);

/* SPDX-License-Identifier: MIT */
/* Splits elements off their array. */
#pragma once

#include <stdint.h>

struct core;
struct core_entry;

/* Creates a job for this element, linked to its array. */
struct core_entry *core_split(struct core *core, struct core_entry *array, uint32_t index);

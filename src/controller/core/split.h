/* SPDX-License-Identifier: MIT */
/* Splits elements off their array. */
#pragma once

#include <stdint.h>

struct core;
struct core_entry;

/* Creates a job for this element, linked to its array, with these dependencies (NULL: none). */
struct core_entry *core_split(struct core *core, struct core_entry *array, uint32_t index, const char *after);

/* The same for an element that does not start now: updates the scheduler about it and the array. */
struct core_entry *core_split_off(
    struct core *core, struct core_entry *array, uint32_t index, const char *after);

/* Gives a waiting element other dependencies. */
void core_depend(struct core *core, struct core_entry *element, const char *after);

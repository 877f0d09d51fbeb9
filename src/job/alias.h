/* SPDX-License-Identifier: MIT */
/* A job's number as eight characters, "F68FAFEC", as other schedulers name jobs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ALIAS_SIZE 9U // bytes, with the NUL

/* Writes the alias; returns false and an empty text for a number too high to have one (above 1.6 billion). */
bool job_alias(uint64_t id, char ret[ALIAS_SIZE]);

/* Parses an alias in either case; false if the text is none. A decimal number never is. */
bool job_alias_parse(const char *text, uint64_t *ret);

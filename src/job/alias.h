/* SPDX-License-Identifier: MIT */
/* A job's number in eight characters, "F68FAFEC": what other schedulers call a job, for those who type it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ALIAS_SIZE 9U // bytes, with the NUL

/* Writes it; false, and an empty text, for a number too high to have one (1.6 thousand million). */
bool job_alias(uint64_t id, char ret[ALIAS_SIZE]);

/* Reads it in either case; false when the text is no alias. No decimal number is one. */
bool job_alias_parse(const char *text, uint64_t *ret);

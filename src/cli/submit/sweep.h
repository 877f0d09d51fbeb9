/* SPDX-License-Identifier: MIT */
/*
 * --sweep lr=0.1,0.01 --sweep seed=1-5: one job per combination, the first --sweep varying slowest. A job has
 * its values as environment variables, and in place of {lr} in its command, name and output. Values are
 * separated by commas; two integers with a - between them are a range; a backslash escapes the next
 * character.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

#define SWEEP_MAX 1000U // jobs of one sweep

/* Checks one value of --sweep. */
int sweep_check(const char *text, struct error *err);

/* Appends the requests of all combinations to the array; without sweeps, only the request itself. They have
 * no key. */
int sweep_expand(const struct strings *sweeps, json_t *request, json_t *requests, struct error *err);

/* SPDX-License-Identifier: MIT */
/*
 * --sweep lr=0.1,0.01 --sweep seed=1-5: a job for each combination, the first --sweep changing slowest. A job
 * has its values as variables of its environment, and where {lr} stands in its command, its name or its
 * output. The values of a variable are separated by commas; two whole numbers with a - between them are a
 * range; a backslash takes the next character as it is.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

#define SWEEP_MAX 1000U // jobs of one sweep

/* Checks one value of --sweep. */
int sweep_check(const char *text, struct error *err);

/* Appends the requests that the sweeps make of one to the array; without sweeps that one. They have no key.
 */
int sweep_expand(const struct strings *sweeps, json_t *request, json_t *requests, struct error *err);

/* SPDX-License-Identifier: MIT */
/* The order in which the checks run: those that others need, then the most important ones. */
#pragma once

#include <stdio.h>

#include "lab/kit/kit.h"

/* Calls `visit` for each check in that order; `only` is a list of names between commas, NULL: all. */
void plan_each(const char *only, void (*visit)(const struct check *check, void *arg), void *arg);

/* -EINVAL with the names that exist if `only` has another one. */
int plan_check_names(const char *only, struct error *err);

/* A line per check: its name, its usual time, the time until its end, and its subject. */
void plan_print(const char *only, FILE *out);

/* For how long the check can wait at most in the time that is left. True: that suffices. */
bool plan_has_time(const struct kit *kit, const struct check *check);

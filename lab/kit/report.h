/* SPDX-License-Identifier: MIT */
/* The results of the checks as report.json, and as a page of text. */
#pragma once

#include "lab/kit/kit.h"

struct report;

struct report *report_new(const char *folder);
void report_free(struct report *report);

/* Adds a result, and prints its line to standard output. Takes the facts of `result`. */
void report_add(struct report *report, const struct check *check, struct result *result, int64_t ms);

size_t report_count(const struct report *report, enum outcome outcome);

/* Writes report.json and report.txt to the folder. Called after each check, so that a kit that is killed
 * leaves what it has. */
int report_write(const struct report *report, struct error *err);

/* SPDX-License-Identifier: MIT */
/* A report as a page of text, for readers who know neither mgpu nor the kit. */
#pragma once

#include <jansson.h>

#include "base/error.h"

#define PAGE_FORMAT 1 // of report.json

/* The line of one check, as report.json has it, with its line feed. The caller frees it. */
char *page_line(const json_t *check);

/* The page of a whole report. NULL, with the reason in `err`, if `report` is none that this kit reads: it may
 * come from anybody. The caller frees it. */
char *page_of(const json_t *report, struct error *err);

/* The same for the report in a file of at most 16 MiB. */
char *page_of_file(const char *path, struct error *err);

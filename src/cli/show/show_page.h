/* SPDX-License-Identifier: MIT */
/* The page of `mgpu show`: shared by its parts. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/options/list.h"

#define WORD_MAX 65536 // bytes of one field of a page

/* Input of the rows of the page. */
struct page {
    const json_t *job;
    const json_t *why;      // for a waiting job, else NULL
    const json_t *steps;    // those that it has had, or NULL
    const char *unenforced; // limits that are counted but not enforced, or NULL
    struct view view;
    FILE *out;
};

/* "label      text", broken between words on a narrow screen. */
void show_print_line(const struct page *page, const char *label, const char *text);

/* The same of a text that people copy: only the terminal breaks it. */
void show_print_copied(const struct page *page, const char *label, const char *text);

/* Its logs, by their paths. */
void show_print_logs(const struct page *page);

/* Its notification targets, and the results. */
void show_print_notifications(const struct page *page);

/* The periods for which it was parked, with their causes, the latest ones on one line each; by when mgpud
 * returns it, the job that is parked for it, and why mgpud does not park it for others. */
void show_print_parks(const struct page *page);

/* show_early.c: of a job that started before its GPUs were free. */
void show_print_early(const struct page *page);

/* Its steps, one line each. */
void show_print_steps(const struct page *page);

/* Its events, one line each. */
void show_print_events(const struct page *page);

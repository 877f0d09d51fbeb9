/* SPDX-License-Identifier: MIT */
/* The page of `mgpu show`: what its parts share. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/options/list.h"

#define WORD_MAX 65536 // bytes of one word of a page

/* What a row of the page needs. */
struct page {
    const json_t *job;
    const json_t *why;      // of a job that waits, else NULL
    const char *unenforced; // what it asked for and its node only counts, or NULL
    struct view view;
    FILE *out;
};

/* "label      text" */
void show_print_line(const struct page *page, const char *label, const char *text);

/* Whom it tells, and what became of that. */
void show_print_notifications(const struct page *page);

/* What happened to it, one line each. */
void show_print_events(const struct page *page);

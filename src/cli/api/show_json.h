/* SPDX-License-Identifier: MIT */
/* JSON for people and scripts (--json), as mgpud told it. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* On one line: an object of many. */
void show_json_line(const json_t *value, FILE *out);

/* Indented: one that is the whole answer. */
void show_json_page(const json_t *value, FILE *out);

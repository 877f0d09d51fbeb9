/* SPDX-License-Identifier: MIT */
/* Prints JSON answers of mgpud unchanged (--json). */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* On one line: for one object of many. */
void show_json_line(const json_t *value, FILE *out);

/* Indented: for a whole answer. */
void show_json_page(const json_t *value, FILE *out);

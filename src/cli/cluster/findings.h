/* SPDX-License-Identifier: MIT */
/*
 * The findings of mgpu doctor: collected, and printed with the most severe first. Nodes with the same finding
 * share a line, so a thousand nodes without a fault take as many lines as one.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/term/screen.h"

enum verdict { VERDICT_ON, VERDICT_OFF, VERDICT_BAD }; // OFF: works without it

struct findings;

struct findings *findings_new(void);
void findings_freep(struct findings **findings); // of NULL is allowed

/* `node` is NULL if the finding concerns all; `text` and `fix` may be NULL. */
void findings_add(struct findings *findings, enum verdict verdict, const char *name, const char *node,
    const char *text, const char *fix);

/* One line, with a second one for the fix of a feature that is not on. */
void finding_print(const struct screen *screen, FILE *out, enum verdict verdict, const char *name,
    const char *text, const char *fix);

/* All findings, the most severe first: objects with verdict ("bad", "off", "on"), name, text, fix, and the
 * nodes concerned. */
json_t *findings_json(const struct findings *findings);

/*
 * Prints all and forgets them; those of `n_nodes`, if there are several, with the nodes that have them. At
 * most `lines_max` of one name and verdict; 0: no limit.
 */
void findings_print(
    struct findings *findings, const struct screen *screen, size_t n_nodes, size_t lines_max, FILE *out);

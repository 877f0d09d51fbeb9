/* SPDX-License-Identifier: MIT */
/* What scontrol displays for an object: lines of KEY=VALUE, from a table for each kind of object. */
#pragma once

#include <stdbool.h>

#include "compat/slurm/fields.h"

struct scontrol_pair {
    bool is_new_line; // it begins one
    const char *key;
    slurm_text_fn *text;  // one line or more; the pair is omitted if it returns NULL
    const char *constant; // for a pair without `text`
    bool is_detail;       // only shown with -d
};

/* How objects are displayed: -o and -d. */
struct scontrol_form {
    bool is_one_line, has_details;
    bool is_quiet;   // missing objects are not reported
    bool is_verbose; // prints the time of the data and the number of objects
};

/* With -v, prints the line that precedes that many objects. */
void scontrol_count_print(size_t count, const struct scontrol_form *form);

/* Prints the pairs up to one with a NULL key. */
void scontrol_pairs_print(
    const struct scontrol_pair *pairs, const json_t *thing, const struct scontrol_form *form);

/* SPDX-License-Identifier: MIT */
/* What scontrol shows of a thing: lines of KEY=VALUE, from a table for each kind of thing. */
#pragma once

#include <stdbool.h>

#include "compat/slurm/fields.h"

struct scontrol_pair {
    bool is_new_line; // it begins one
    const char *key;
    slurm_text_fn *text;  // of the thing, of one line or more; the pair is left out if it returns NULL
    const char *constant; // for a pair without `text`
    bool is_detail;       // shown with -d alone
};

/* How things are shown: -o and -d. */
struct scontrol_form {
    bool is_one_line, has_details;
    bool is_quiet;   // what is not found is not said
    bool is_verbose; // when what is shown was true, and how many there are
};

/* With -v, the line before that many things are shown. */
void scontrol_count_print(size_t count, const struct scontrol_form *form);

/* Prints the pairs up to one with a NULL key. */
void scontrol_pairs_print(
    const struct scontrol_pair *pairs, const json_t *thing, const struct scontrol_form *form);

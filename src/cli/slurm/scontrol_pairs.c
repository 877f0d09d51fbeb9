/* SPDX-License-Identifier: MIT */
#include "cli/slurm/scontrol_pairs.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"

void scontrol_pairs_print(
    const struct scontrol_pair *pairs, const json_t *thing, const struct scontrol_form *form)
{
    int64_t now_ms = clock_wall_ms();
    bool is_due = false; // a new line of a pair that was left out
    for (const struct scontrol_pair *pair = pairs; pair->key != NULL; pair++) {
        _cleanup_free_ char *text = pair->text != NULL       ? pair->text(thing, now_ms)
                                    : pair->constant != NULL ? xstrdup(pair->constant)
                                                             : NULL;
        is_due |= pair->is_new_line;
        if (text == NULL || (pair->is_detail && !form->has_details))
            continue;
        for (char *p = text; form->is_one_line && *p != '\0'; p++)
            *p = *p == '\n' ? ' ' : *p;
        if (pair != pairs)
            (void)fputs(is_due && !form->is_one_line ? "\n   " : " ", stdout);
        (void)printf("%s=%s", pair->key, text);
        is_due = false;
    }
    (void)fputs(form->is_one_line ? "\n" : "\n\n", stdout);
}

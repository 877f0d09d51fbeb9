/* SPDX-License-Identifier: MIT */
#include "cli/show/park_text.h"

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/time_text.h"

char *park_text(const struct view *view, const json_t *job)
{
    double guest = 0;
    char until[64];
    if (!field_is_known(job, "latest_return"))
        return NULL;
    time_format(
        time_parse(field_text(job, "latest_return")), view->now_ms, view->times, until, sizeof(until));
    return field_measured(job, "park_guest", &guest) ? xasprintf("for job %.0f, back by %s", guest, until)
                                                     : xasprintf("back by %s", until);
}

char *park_due_text(const struct view *view, const json_t *job)
{
    double lender = 0;
    char due[64];
    if (!field_measured(job, "gpus_due_to", &lender))
        return NULL;
    time_format(time_parse(field_text(job, "gpus_due_at")), view->now_ms, view->times, due, sizeof(due));
    return xasprintf("due to job %.0f at %s: it starts again, once, if it still runs then", lender, due);
}

char *park_lent_text(const json_t *job)
{
    double borrower = 0;
    if (!field_measured(job, "gpus_lent_to", &borrower))
        return NULL;
    return xasprintf("lent to job %.0f, which starts again if it still runs when this one returns", borrower);
}

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

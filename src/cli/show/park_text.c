/* SPDX-License-Identifier: MIT */
#include "cli/show/park_text.h"

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/time_text.h"

#define TIME_SIZE 64

static bool read_return(const struct view *view, const json_t *job, char until[TIME_SIZE])
{
    bool is_known = field_is_known(job, "latest_return");
    if (is_known)
        time_format(
            time_parse(field_text(job, "latest_return")), view->now_ms, view->times, until, TIME_SIZE);
    return is_known;
}

char *park_text(const struct view *view, const json_t *job)
{
    double guest = 0;
    char until[TIME_SIZE];
    if (!read_return(view, job, until))
        return NULL;
    return field_measured(job, "park_guest", &guest) ? xasprintf("for job %.0f, back by %s", guest, until)
                                                     : xasprintf("back by %s", until);
}

char *park_due_text(const struct view *view, const json_t *job)
{
    double lender = 0;
    char due[TIME_SIZE];
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

static char *back_text(const struct view *view, const json_t *job)
{
    double guest = 0;
    char until[TIME_SIZE];
    if (!read_return(view, job, until))
        return NULL;
    return field_measured(job, "park_guest", &guest)
               ? xasprintf("%s; it makes room for job %.0f", until, guest)
               : xstrdup(until);
}

static char *host_text(const struct view *view, const json_t *job)
{
    double host = 0;
    return field_measured(job, "park_host", &host) ? xasprintf("job %.0f is parked for it", host) : NULL;
}

static char *lent_text(const struct view *view, const json_t *job)
{
    return park_lent_text(job);
}

static char *reclaimed_text(const struct view *view, const json_t *job)
{
    double lender = 0;
    return field_measured(job, "reclaimed_by", &lender)
               ? xasprintf(
                     "because its GPUs were due to job %.0f, which was parked; this happens once", lender)
               : NULL;
}

static char *bar_text(const struct view *view, const json_t *job)
{
    if (!field_is_known(job, "park_bar"))
        return NULL;
    _cleanup_free_ char *bar = field_shown(job, "park_bar");
    return xasprintf("not for shorter jobs: %s", bar);
}

const struct park_fact park_facts[] = {
    { "back by", back_text },
    { "instead of", host_text },
    { "its GPUs", park_due_text },
    { "its GPUs", lent_text },
    { "reclaimed", reclaimed_text },
    { "parking", bar_text },
    { 0 },
};

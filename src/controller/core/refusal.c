/* SPDX-License-Identifier: MIT */
#include "controller/core/refusal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/describe.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"

static bool could_run_elsewhere(const struct core *core, const struct job *job)
{
    const struct core_facts none = { 0 };
    struct description description;
    struct error err = { 0 };
    struct job_ask ask = *job->ask;
    ask.after = NULL; // it has started before
    struct job waiting = *job;
    waiting.ask = &ask;
    if (core_describe(core, &waiting, &none, &description, &err) < 0)
        return false;
    int r = sched_check(core->sched, &description.spec, &err);
    description_clear(&description);
    return r == 0;
}

bool core_leave_out(struct core *core, struct core_entry *entry, const char *node, const char *text)
{
    struct core_extra *extra = core_make_extra(entry);
    char *all = extra->refused_by == NULL ? xstrdup(node) : xasprintf("%s,%s", extra->refused_by, node);
    free(extra->refused_by);
    extra->refused_by = all;
    if (entry->job->state != JOB_STARTING || !could_run_elsewhere(core, entry->job)) {
        core_admit_again(entry);
        return false;
    }
    core_give_back(core, entry, text);
    return true;
}

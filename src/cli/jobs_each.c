/* SPDX-License-Identifier: MIT */
/* One job that fails must not keep the others from being done. */
#include "cli/jobs_each.h"

#include "cli/exit_code.h"
#include "cli/talk.h"

int jobs_each(struct call *call, const struct strings *jobs, jobs_each_fn each, void *arg)
{
    size_t failures = 0;
    int status = EXIT_OK;
    for (size_t i = 0; i < jobs->count; i++) {
        struct error err = { 0 };
        int r = each(call, jobs->items[i], arg, &err);
        if (r >= 0)
            continue;
        int here = exit_code_of_error(r);
        status = failures == 0 || status == here ? here : EXIT_PARTLY;
        failures++;
        talk_error(call->command->name, &err);
        if (status == EXIT_UNREACHABLE)
            return status;
    }
    return failures > 0 && failures < jobs->count ? EXIT_PARTLY : status;
}

/* SPDX-License-Identifier: MIT */
/* What is used and learnt outlives restarts: rows of the store, written with the batch that changed them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "controller/core/private.h"

static void keep_account(struct core *core, uint32_t id, bool is_group)
{
    struct fairshare *fairshare = sched_fairshare(core->sched);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    (void)snprintf(key, sizeof(key), "%c:%" PRIu32, is_group ? 'g' : 'u', id);
    account_encode(fairshare, fairshare_account(fairshare, id, is_group), core->now_ms, &bytes);
    store_batch_put(core_batch(core)->changes, "usage", key, &bytes);
}

static void keep_history(void *arg, const char *name, const struct buffer *bytes)
{
    struct core *core = arg;
    store_batch_put(core_batch(core)->changes, "history", name, bytes);
}

void core_keep_accounts(struct core *core, const struct job *job)
{
    struct description description;
    struct history_key key;
    struct job shell = *job; // borrowed: nothing of it is freed
    keep_account(core, job->uid, false);
    keep_account(core, job->gid, true);
    struct job_ask ask = *job->ask;
    ask.after = NULL;
    shell.ask = &ask;
    if (job->state != JOB_DONE || core_describe(core, &shell, NULL, &description, &(struct error){ 0 }) < 0)
        return;
    sched_history_key(core->sched, &description.spec.key, &key);
    history_each_of(sched_history(core->sched), &key, keep_history, core);
    description_clear(&description);
}

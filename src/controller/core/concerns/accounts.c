/* SPDX-License-Identifier: MIT */
/* Usage and run times survive restarts: rows of the store, written with the batch that changed them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/describe.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"

static void keep_account(struct core *core, uint32_t id, bool is_group)
{
    struct fairshare *fairshare = sched_fairshare(core->sched);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    (void)snprintf(key, sizeof(key), "%c:%" PRIu32, is_group ? 'g' : 'u', id);
    account_encode(fairshare, fairshare_account(fairshare, id, is_group ? ACCOUNT_GROUP : ACCOUNT_USER),
        core->now_ms, &bytes);
    store_batch_put(core_batch(core)->changes, "usage", key, &bytes);
}

static void keep_history(void *arg, const char *name, const struct buffer *bytes)
{
    struct core *core = arg;
    store_batch_put(core_batch(core)->changes, "history", name, bytes);
}

static void keep_accounts(struct core *core, const struct job *job)
{
    struct description description;
    struct history_key key;
    struct job shell = *job; // borrowed: none of it is freed
    keep_account(core, job->uid, false);
    keep_account(core, job_group(job), true);
    struct job_ask ask = *job->ask;
    ask.after = NULL;
    shell.ask = &ask;
    if (job->state != JOB_DONE || core_describe(core, &shell, NULL, &description, &(struct error){ 0 }) < 0)
        return;
    sched_history_key(core->sched, &description.spec.key, &key);
    history_each_of(sched_history(core->sched), &key, keep_history, core);
    description_clear(&description);
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    keep_accounts(core, entry->job);
}

static int load_account(
    struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    return account_decode(sched_fairshare(core->sched), bytes, length, err);
}

/* The history is optional: damaged rows, and rows in an older format, are dropped. */
static int load_history(
    struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    (void)history_decode(sched_history(core->sched), key, bytes, length, err);
    return 0;
}

static const struct core_kind kinds[] = {
    { .kind = "usage", .load = load_account },
    { .kind = "history", .load = load_history },
    { 0 },
};

const struct core_concern core_concern_accounts = {
    .name = "accounts",
    .kinds = kinds,
    .events = CORE_ON_OVER,
    .event = on_event,
};

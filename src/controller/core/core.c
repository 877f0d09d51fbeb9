/* SPDX-License-Identifier: MIT */
/* Creates, configures and frees the core. */
#include "controller/core/core.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/concerns.h"
#include "controller/core/entry.h"
#include "controller/core/forecast_cache.h"
#include "controller/core/node_view.h"
#include "controller/core/owners.h"
#include "controller/core/refusal.h"
#include "controller/core/settings.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

struct core *core_new(const struct core_options *options, const struct core_effects *effects)
{
    struct core *core = xcalloc(1, sizeof(*core));
    core->options = *options;
    core->effects = *effects;
    core_set_concerns(core, core_concerns);
    core_init_concerns(core);
    core_configure_accounts(core);
    core_configure_partitions(core);
    return core;
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    core_batch_free(core->open);
    core_batch_free(core->flying);
    for (struct core_entry *entry = core->jobs.first; entry != NULL; entry = entry->after)
        core_hook_gone(core, entry);
    core_free_concerns(core);
    for (size_t i = 0; i < core->n_nodes; i++) {
        free(core->nodes[i].name);
        free(core->nodes[i].address);
        free(core->nodes[i].here);
        free(core->nodes[i].boot_before);
        core_forget_description(&core->nodes[i]);
        strings_clear(&core->nodes[i].models);
        record_clear(&message_hello_record, &core->nodes[i].hello);
        core_clear_gpus(&core->nodes[i]);
    }
    free(core->nodes);
    name_table_clear(&core->node_names);
    free(core->link_hints);
    core_clear_node_jobs(core);
    core_clear_forecast_cache(core);
    core_clear_troubles(core);
    core_clear_owners(core);
    key_table_clear(&core->keys);
    job_table_clear(&core->jobs);
    ask_cache_clear(&core->asks);
    free(core);
}

struct sched *core_sched(const struct core *core)
{
    return core->sched;
}

void core_forget(struct core *core, void *request)
{
    core_forget_replies(core, request);
    core_hook_forget(core, request);
}

void core_on_durable(struct core *core, uint64_t id)
{
    struct batch *batch = core->flying;
    if (batch == NULL || batch->id != id)
        return;
    core->flying = NULL;
    core->durable_batch = id;
    core_batch_durable(core, batch);
    core_hook_durable(core);
    core_trim_done(core);
}

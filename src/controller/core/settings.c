/* SPDX-License-Identifier: MIT */
/* Settings at the start and when they change. */
#include "controller/core/settings.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/park_proof.h"
#include "controller/core/state.h"

/* NULL: the group has no department. */
static struct account *department_of(const struct core *core, uint32_t gid)
{
    for (size_t i = 0; i < core->options.n_accounts; i++) {
        const struct core_account *given = &core->options.accounts[i];
        if (given->kind == ACCOUNT_GROUP && given->id == gid && given->department != 0)
            return fairshare_account(sched_fairshare(core->sched), given->department, ACCOUNT_DEPARTMENT);
    }
    return NULL;
}

void core_configure_accounts(struct core *core)
{
    struct fairshare *fairshare = sched_fairshare(core->sched);
    fairshare->has_group_shares = false;
    for (size_t i = 0; i < core->options.n_accounts; i++) {
        const struct core_account *given = &core->options.accounts[i];
        struct account *account = fairshare_account(fairshare, given->id, given->kind);
        account->shares = given->shares > 0 ? given->shares : 1;
        fairshare->has_group_shares |= given->kind == ACCOUNT_GROUP && given->shares > 0;
        account->limits = given->limits;
    }
    for (struct account *account = fairshare->first; account != NULL; account = account->next)
        if (account->kind == ACCOUNT_GROUP)
            fairshare_set_parent(fairshare, account, department_of(core, account->id), core->now_ms);
}

const char *core_department_name(const struct core *core, uint32_t number)
{
    for (size_t i = 0; i < core->options.n_accounts; i++)
        if (core->options.accounts[i].kind == ACCOUNT_DEPARTMENT && core->options.accounts[i].id == number)
            return core->options.accounts[i].name;
    return NULL;
}

/* If no cost of parking is configured, the cost measured by tests of parking is used. */
static struct sched_settings sched_settings_now(const struct core *core)
{
    struct sched_settings settings = core->options.sched;
    if (settings.parking == PARKING_AUTO && settings.park_cost_ms == 0)
        settings.park_cost_ms = core_measured_park_ms(core);
    return settings;
}

bool core_configure_park_cost(struct core *core, int64_t before_ms)
{
    const struct sched_settings settings = sched_settings_now(core);
    bool is_used = settings.parking == PARKING_AUTO && core->options.sched.park_cost_ms == 0;
    if (!is_used || settings.park_cost_ms == before_ms)
        return false;
    sched_configure(core->sched, core->now_ms, &settings);
    core_configure_accounts(core);
    return true;
}

#define FORM_U32                     "%" PRIu32
#define FORM_MS                      "%" PRId64
#define FORM_REAL                    "%.3f"
#define WRITE(kind_, name_, member_) buffer_printf(text, #name_ "=" FORM_##kind_ "\n", settings->member_);

static void write_settings(const struct sched_settings *settings, struct buffer *text)
{
    buffer_printf(text, "policy=%s\nplacement=%s\n", settings->policy->name, settings->placement->name);
    SCHED_SETTINGS_TABLE(WRITE)
}

/* "partition=NAME PRIORITY n1,n2"; without nodes, all. */
static void write_partitions(const struct core_options *options, struct buffer *text)
{
    for (size_t i = 0; i < options->n_partitions; i++) {
        const struct cluster_partition *set = &options->partitions[i].set;
        buffer_printf(text, "partition=%s %" PRId32, set->name, set->priority);
        for (size_t k = 0; k < set->nodes.count; k++)
            buffer_printf(text, "%c%s", k == 0 ? ' ' : ',', set->nodes.items[k]);
        buffer_append_text(text, "\n");
    }
}

/* "account=u:1000 SHARES JOBS GPU_MILLI GPU_SECONDS 0"; for a group, the number of its department comes
 * last. */
char *core_settings_text(const struct core *core)
{
    struct buffer text = { 0 };
    const struct sched_settings settings = sched_settings_now(core);
    write_settings(&settings, &text);
    for (size_t i = 0; i < core->options.n_accounts; i++) {
        const struct core_account *account = &core->options.accounts[i];
        buffer_printf(&text, "account=%c:%" PRIu32 " %.17g %" PRIu32 " %" PRIu32 " %.17g %" PRIu32 "\n",
            "ugd"[account->kind], account -> id, account -> shares, account -> limits.jobs,
            account->limits.gpu_milli, account->limits.gpu_seconds, account->department);
    }
    write_partitions(&core->options, &text);
    return buffer_take(&text);
}

void core_note_settings(struct core *core, bool is_live)
{
    _cleanup_free_ char *text = core_settings_text(core);
    _cleanup_free_ char *marked = xasprintf("%s%s", is_live ? SETTINGS_LIVE : "", text);
    struct cluster_change settings = {
        .kind = CHANGE_SETTINGS, .uid = core->options.admin_uid, .text = marked
    };
    core_change_cluster(core, &settings);
}

void core_configure(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct core_options *options)
{
    struct fairshare *fairshare = sched_fairshare(core->sched);
    uint32_t admin_uid = core->options.admin_uid;
    core_begin(core, boot_ms, wall_ms);
    core->options = *options;
    core->options.admin_uid = admin_uid;
    for (struct account *account = fairshare->first; account != NULL; account = account->next)
        account->shares = 1;
    /* The shares determine the order of the queue; the default limits replace all others. */
    core_configure_accounts(core);
    const struct sched_settings settings = sched_settings_now(core);
    sched_configure(core->sched, core->now_ms, &settings);
    core_configure_accounts(core);
    core_configure_partitions(core);
    core_note_settings(core, true);
}

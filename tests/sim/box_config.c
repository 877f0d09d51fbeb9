/* SPDX-License-Identifier: MIT */
/*
 * The configuration file, which is read again now and then while the storm is on: policies, limits and shares
 * of users and groups, departments, and partitions. Afterwards nothing is limited any more.
 */
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "controller/core/park_proof.h"
#include "controller/core/state.h"

#define PROVE_MS     100
#define AGAIN_IN     100 // looks, on average: a test that has passed before
#define GRACE_MS     10
#define PARK_COST_MS 40 // to park a job and to return it, in mild histories, at least

static char first[] = BOX_PARTITION, all[] = "all", n0[] = "n0", n1[] = "n1";
static char *nodes_of_first[] = { n0, n1 };

static uint32_t limit_of(struct box *box, int64_t least, int64_t most)
{
    return world_one_in(&box->world, 3) ? (uint32_t)world_between(&box->world, least, most) : 0;
}

static struct account_limits limits_of(struct box *box)
{
    if (box->are_plain && !world_one_in(&box->world, 8))
        return (struct account_limits){ 0 };
    bool is_rationed = world_one_in(&box->world, 6);
    return (struct account_limits){ .jobs = limit_of(box, 2, 8),
        .gpu_milli = 1000 * limit_of(box, 4, 8),
        .gpu_seconds = is_rationed ? (double)world_between(&box->world, 2, 20) : 0 };
}

/* The scheduler parks by its own rule, most of the time. */
static void vary_parking(struct box *box)
{
    struct sched_settings *settings = &box->config.settings;
    settings->policy = &policy_default; // others preempt, or let nobody past
    settings->parking = world_one_in(&box->world, 8) ? PARKING_ASKED : PARKING_AUTO;
    settings->quantum_ms = world_between(&box->world, 10, 200);
    settings->park_cost_ms = world_between(&box->world, PARK_COST_MS, 2 * PARK_COST_MS);
    box->config.park_max = (uint64_t)world_between(&box->world, 1, 12) << 30;
    settings->preempt_grace_ms = GRACE_MS;
}

static void vary_early(struct box *box)
{
    box->config.early = (struct early_settings){
        .mode = world_one_in(&box->world, 6)   ? EARLY_NEVER
                : world_one_in(&box->world, 2) ? EARLY_ASKED
                                               : EARLY_AUTO,
        .within_ms = world_between(&box->world, 50, 4000),
    };
    box->was_auto |= box->config.early.mode == EARLY_AUTO;
}

/* In the histories that have it, it is on nearly always, after the storm too. */
static void vary_behind(struct box *box)
{
    bool is_off = !box->has_behind || (box->is_storm && world_one_in(&box->world, 8));
    box->config.early.elements_ms = is_off ? 0 : world_between(&box->world, 50, 1000);
}

static void vary_settings(struct box *box)
{
    struct sched_settings *settings = &box->config.settings;
    size_t n_policies = 0, n_placements = 0;
    while (policies[n_policies] != NULL)
        n_policies++;
    while (placements[n_placements] != NULL)
        n_placements++;
    const struct policy *policy = policies[world_random(&box->world) % n_policies];
    if (!policy->is_oracle)
        settings->policy = policy;
    settings->placement = placements[world_random(&box->world) % n_placements];
    settings->reservations = (uint32_t)world_between(&box->world, 1, 4);
    settings->node_starts = (uint32_t)world_between(&box->world, 0, 2);
    settings->node_jobs = limit_of(box, 3, 8);
    settings->half_life_ms = world_between(&box->world, 1000, 100000);
    settings->quantum_ms = world_between(&box->world, 10, 2000);
    settings->unused_ms = world_between(&box->world, 500, 5000);
    settings->user_limits = limits_of(box);
    settings->group_limits = limits_of(box);
}

/* Some users and groups have limits and shares of their own. */
static void vary_accounts(struct box *box)
{
    struct box_config *config = &box->config;
    bool has_department = world_one_in(&box->world, 2);
    config->n_accounts = 0;
    for (uint32_t i = 0; i < BOX_ACCOUNTS; i++) {
        static const struct {
            enum account_kind kind;
            uint32_t id;
        } who[BOX_ACCOUNTS] = { { ACCOUNT_USER, 1000 }, { ACCOUNT_USER, 1001 }, { ACCOUNT_USER, 1002 },
            { ACCOUNT_GROUP, 1000 }, { ACCOUNT_GROUP, 1001 }, { ACCOUNT_DEPARTMENT, 1 } };
        enum account_kind kind = who[i].kind;
        struct core_account *account = &config->accounts[config->n_accounts];
        *account = (struct core_account){ .kind = kind, .id = who[i].id };
        account->shares = (double)world_between(&box->world, 0, 4);
        if (kind != ACCOUNT_DEPARTMENT) // which has shares only
            account->limits = limits_of(box);
        account->department = kind == ACCOUNT_GROUP && has_department;
        if (kind == ACCOUNT_DEPARTMENT)
            (void)strcpy(account->name, "physics");
        config->n_accounts += kind == ACCOUNT_DEPARTMENT ? has_department : !world_one_in(&box->world, 3);
    }
}

/* The nodes of a partition change; each has a node that is never lost, or every node. */
static void vary_partitions(struct box *box)
{
    struct cluster_partition *set = &box->config.partitions[0].set;
    set->nodes.count = box->n_places == 1 ? 1 : (size_t)world_between(&box->world, 1, 2);
    set->priority = box->are_plain ? 0 : (int32_t)world_between(&box->world, 0, 2);
}

void box_vary_config(struct box *box)
{
    struct box_config *config = &box->config;
    sched_settings_init(&config->settings);
    config->partitions[0].set = (struct cluster_partition){ .name = first };
    config->partitions[0].set.nodes.items = nodes_of_first;
    config->partitions[1].set = (struct cluster_partition){ .name = all };
    config->partitions[1].is_default = true;
    config->n_accounts = 0;
    config->park_max = 64ULL << 30;
    config->early = (struct early_settings){ .mode = EARLY_ASKED, .within_ms = 1000 };
    if (!box->is_storm) {
        vary_behind(box);
        return;
    }
    vary_settings(box);
    vary_accounts(box);
    vary_early(box);
    vary_behind(box);
    if (box->are_plain)
        vary_parking(box);
    vary_partitions(box);
}

struct core_options box_options(const struct box *box)
{
    const struct box_config *config = &box->config;
    struct core_options options = {
        .boot_id = "sim",
        .queue_max = 10000,
        .recent_done_max = 20,
        .grace_ms = GRACE_MS,
        .start_patience_ms = 60000,
        .sched = config->settings,
    };
    options.accounts = config->accounts;
    options.n_accounts = config->n_accounts;
    options.partitions = config->partitions;
    options.n_partitions = BOX_PARTITIONS;
    options.early = config->early;
    options.external = (struct external_settings){ .policy = EXTERNAL_AVOID,
        .external_memory = 512ULL << 20,
        .external_load = 5,
        .share_memory = 80,
        .share_load = 80 };
    options.park.bytes_max = config->park_max;
    options.health = (struct health_settings){ .recover_ms = 1500, .unclean_ms = 1000 };
    options.loss = (struct loss_settings){ .timeout_ms = 1500, .lease_ms = 2000 };
    options.idle = (struct idle_policy){ .warn_ms = 50, .yields_ms = 150 };
    return options;
}

/* An operator tests all nodes that are not proven, as soon as they are up. Those that are not cannot park
 * jobs. */
static void on_prove(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    static const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    static char driver[] = NODE_DRIVER, model[] = NODE_MODEL, elsewhere[] = "passed";
    static char *models[] = { model };
    for (size_t i = 0; box->core != NULL && i < box->n_places; i++) {
        const struct place *place = &box->places[i];
        const struct core_node *known = core_node_named(box->core, place->node.name);
        bool is_there = known != NULL && known->is_up && !node_is_frozen(&place->node);
        if (!is_there)
            box_disturb(box, place, PROVE_MS);
        bool is_proven = core_parking_is_proven(box->core, place->node.name);
        if (!is_there || (is_proven && !world_one_in(&box->world, AGAIN_IN)))
            continue;
        struct park_proof proof = { .driver = driver,
            .models = { .items = models, .count = 1 },
            .passed = true,
            .elsewhere = elsewhere,
            .least_bytes = 1 << 30,
            .most_bytes = 1 << 30,
            .least_save_ms = 1,
            .least_load_ms = 1,
            .most_save_ms = 1,
            .most_load_ms = 1 };
        core_set_park_proof(
            box->core, box->world.now_ms, world_wall_ms(&box->world), &admin, place->node.name, &proof, NULL);
        box_turn(box);
    }
    if (box->is_storm)
        world_later(&box->world, PROVE_MS, on_prove, box, 0, NULL, NULL);
}

/* The file has changed, and the controller, if it is up, is told to read it. */
static void on_configure(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    box_vary_config(box);
    box_disturb(box, NULL, 0);
    if (box->core != NULL) {
        struct core_options options = box_options(box);
        core_configure(box->core, box->world.now_ms, world_wall_ms(&box->world), &options);
        box->tally.counts[TALLY_SETTINGS]++;
        box_turn(box);
    }
    if (box->is_storm || box->core == NULL)
        world_later(&box->world, world_between(&box->world, 500, box->are_plain ? 12000 : 4000), on_configure,
            box, 0, NULL, NULL);
}

void box_open_config(struct box *box)
{
    world_later(&box->world, 2500, on_configure, box, 0, NULL, NULL);
    if (box->are_plain)
        world_later(&box->world, PROVE_MS, on_prove, box, 0, NULL, NULL);
}

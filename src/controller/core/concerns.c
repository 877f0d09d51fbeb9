/* SPDX-License-Identifier: MIT */
/*
 * The table of concerns. The order matters for events: concerns that store a row for an event come first,
 * those that change the cluster or further jobs last, so that all see events in the order of their numbers.
 */
#include "controller/core/concerns.h"

#include <stddef.h>

#include "controller/core/concern.h"
#include "controller/core/state.h"

extern const struct core_concern core_concern_counts, core_concern_limits, core_concern_notifications,
    core_concern_delays, core_concern_quotas, core_concern_schedule, core_concern_accounts,
    core_concern_adoptions, core_concern_waiters, core_concern_restored, core_concern_loss,
    core_concern_orphans, core_concern_release, core_concern_external, core_concern_health,
    core_concern_marks, core_concern_single, core_concern_ranks, core_concern_idle, core_concern_share,
    core_concern_instances, core_concern_reservations, core_concern_prepare, core_concern_arrays,
    core_concern_steps, core_concern_park, core_concern_park_rule, core_concern_pairs, core_concern_budgets,
    core_concern_forecasts, core_concern_park_proof, core_concern_early, core_concern_ended_memory,
    core_concern_behind;

const struct core_concern *const core_concerns[] = {
    &core_concern_counts,
    &core_concern_limits,
    &core_concern_notifications,
    &core_concern_delays,
    &core_concern_quotas,
    &core_concern_pairs,     // its end of turn comes before that of the schedule
    &core_concern_park_rule, // and it must know of a refusal before
    &core_concern_schedule,
    &core_concern_accounts,
    &core_concern_forecasts,
    &core_concern_waiters,
    &core_concern_steps,
    &core_concern_restored,
    &core_concern_loss,
    &core_concern_orphans,
    &core_concern_release,
    &core_concern_ended_memory, // later concerns use the samples that it has changed
    &core_concern_external,
    &core_concern_health,
    &core_concern_marks,
    &core_concern_single,
    &core_concern_ranks,
    &core_concern_idle,
    &core_concern_share,
    &core_concern_instances,
    &core_concern_reservations,
    &core_concern_park,
    &core_concern_park_proof,
    &core_concern_prepare,
    &core_concern_early,
    &core_concern_adoptions,
    &core_concern_arrays,
    &core_concern_behind,
    &core_concern_budgets,
    NULL,
};

_Static_assert(sizeof(core_concerns) / sizeof(core_concerns[0]) <= CORE_CONCERNS_MAX,
    "there are more concerns than state.h has room for");

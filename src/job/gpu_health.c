/* SPDX-License-Identifier: MIT */
/* Times are the controller's, which never go back. Times of Xids are the node's, which may: Xids after the
 * last one evaluated are new, so samples may repeat earlier ones. */
#include "job/gpu_health.h"

#define SEEN_MS 3000 // a GPU that fails intermittently is not offered between two failures

static const char *const names[GPU_FAULTS] = {
    [GPU_FAULT_NONE] = "none",
    [GPU_FAULT_LOST] = "lost",
    [GPU_FAULT_UNCLEAN] = "unclean",
    [GPU_FAULT_CONTAINED] = "contained",
    [GPU_FAULT_RESET] = "reset",
    [GPU_FAULT_DEVICE] = "device",
};

static const enum gpu_fault faults_of[XID_CLASSES] = {
    [XID_CONTAINED] = GPU_FAULT_CONTAINED,
    [XID_RESET] = GPU_FAULT_RESET,
    [XID_DEVICE] = GPU_FAULT_DEVICE,
};

const char *gpu_fault_name(enum gpu_fault fault)
{
    return fault < GPU_FAULTS ? names[fault] : "invalid";
}

/* The most severe of the new Xids; among equals the first, which usually causes the others. */
static struct gpu_trouble judge_xids(struct gpu_health *health, const struct gpu_observation *observation)
{
    struct gpu_trouble worst = { 0 };
    for (size_t i = xid_first_new(observation->xids, observation->n_xids, health->xid_ms);
         i < observation->n_xids; i++) {
        const struct gpu_xid *xid = &observation->xids[i];
        enum gpu_fault fault = faults_of[xid_class_of(xid->number)];
        health->xid_ms = xid->wall_ms;
        if (fault > worst.fault)
            worst = (struct gpu_trouble){ .fault = fault, .xid = xid->number };
    }
    return worst;
}

static void note_cleanness(struct gpu_health *health, const struct gpu_observation *observation)
{
    if (!observation->is_unclean)
        health->unclean_since_ms = 0;
    else if (health->unclean_since_ms == 0)
        health->unclean_since_ms = observation->now_ms;
}

/* A reset is complete when the driver no longer requires it. The energy counter also restarts when the driver
 * initialises the GPU. */
static void note_reset(
    struct gpu_health *health, const struct gpu_trouble *present, const struct gpu_observation *observation)
{
    if (observation->is_recovery_known) {
        health->was_reset =
            health->was_reset || (health->is_recovery_wanted && !observation->is_recovery_wanted);
        health->is_recovery_wanted = observation->is_recovery_wanted;
    }
    if (observation->energy_mj == 0)
        return;
    health->energy_mj = observation->energy_mj;
    health->was_reset = health->was_reset || observation->energy_mj < present->energy_mj;
}

static bool is_well(const struct gpu_health *health, const struct gpu_trouble *present,
    const struct gpu_observation *observation)
{
    if (observation->is_lost || present->fault == GPU_FAULT_DEVICE)
        return false;
    if (present->fault == GPU_FAULT_LOST)
        return true;
    bool is_reset = health->was_reset && !health->is_recovery_wanted;
    return !observation->is_unclean && !observation->is_held &&
           (present->fault != GPU_FAULT_RESET || is_reset);
}

static int64_t timeout_ms(const struct health_settings *settings, enum gpu_fault present)
{
    return present == GPU_FAULT_LOST ? SEEN_MS : settings->recover_ms;
}

enum gpu_verdict gpu_health_evaluate(struct gpu_health *health, const struct health_settings *settings,
    const struct gpu_trouble *present, const struct gpu_observation *observation, struct gpu_trouble *ret)
{
    struct gpu_trouble seen = judge_xids(health, observation);
    bool was_wanted = health->is_recovery_wanted;
    note_cleanness(health, observation);
    note_reset(health, present, observation);
    bool is_long_unclean = health->unclean_since_ms != 0 &&
                           observation->now_ms - health->unclean_since_ms >= settings->unclean_ms;
    if (is_long_unclean && seen.fault < GPU_FAULT_UNCLEAN)
        seen = (struct gpu_trouble){ .fault = GPU_FAULT_UNCLEAN };
    /* Once per request of the driver: an administrator who resumes the GPU overrides it. */
    if (health->is_recovery_wanted && !was_wanted && seen.fault < GPU_FAULT_RESET)
        seen = (struct gpu_trouble){ .fault = GPU_FAULT_RESET };
    if (observation->is_lost && seen.fault == GPU_FAULT_NONE)
        seen = (struct gpu_trouble){ .fault = GPU_FAULT_LOST };
    if (seen.fault > present->fault) {
        seen.energy_mj = health->energy_mj;
        health->well_since_ms = 0;
        health->was_reset = false;
        *ret = seen;
        return HEALTH_DRAIN;
    }
    bool is_bad = seen.fault != GPU_FAULT_NONE && seen.fault == present->fault;
    if (present->fault == GPU_FAULT_NONE || is_bad || !is_well(health, present, observation)) {
        health->well_since_ms = 0;
        return HEALTH_STAYS;
    }
    if (health->well_since_ms == 0)
        health->well_since_ms = observation->now_ms;
    return observation->now_ms - health->well_since_ms >= timeout_ms(settings, present->fault) ? HEALTH_RETURN
                                                                                               : HEALTH_STAYS;
}

int64_t gpu_health_next_ms(
    const struct gpu_health *health, const struct health_settings *settings, enum gpu_fault present)
{
    if (health->well_since_ms != 0)
        return health->well_since_ms + timeout_ms(settings, present);
    if (health->unclean_since_ms != 0 && present < GPU_FAULT_UNCLEAN)
        return health->unclean_since_ms + settings->unclean_ms;
    return INT64_MAX;
}

/* SPDX-License-Identifier: MIT */
/*
 * Decides when a GPU is taken out of use and when it is put back. Pure: an observation goes in, a verdict
 * comes out.
 *
 *   fault      begins when                           ends by itself when
 *   lost       it does not respond                   it has responded for SEEN_MS
 *   unclean    remains of a job stay too long        it is clean and unused for recover_ms
 *   contained  an Xid of that class                  it is healthy and unused for recover_ms
 *   reset      an Xid of that class, or the driver   the same, after a reset
 *              requires a reset or the node a reboot
 *   device     an Xid of that class                  never
 *
 * A more severe fault replaces a lesser one; an administrator who resumes the GPU ends any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/xid.h"

/* The numbers are stored on disk; higher is more severe. */
enum gpu_fault {
    GPU_FAULT_NONE,
    GPU_FAULT_LOST,
    GPU_FAULT_UNCLEAN,
    GPU_FAULT_CONTAINED,
    GPU_FAULT_RESET,
    GPU_FAULT_DEVICE,
    GPU_FAULTS,
};

struct health_settings {
    int64_t recover_ms; // how long a GPU must be healthy before it is put back
    int64_t unclean_ms; // how long it may be unclean before it counts as a fault
};

/* An observation of a GPU. */
struct gpu_observation {
    int64_t now_ms;
    const struct gpu_xid *xids; // the last ones, oldest first
    size_t n_xids;
    bool is_lost, is_unclean, is_held;          // held: allocated to a job, in whole or in part
    uint64_t energy_mj;                         // counter; 0: unknown
    bool is_recovery_known, is_recovery_wanted; // the driver reports whether a reset is required
};

/* State kept between observations; initially zero. */
struct gpu_health {
    int64_t xid_ms;           // of the last Xid evaluated
    int64_t well_since_ms;    // 0: not healthy
    int64_t unclean_since_ms; // 0: clean
    uint64_t energy_mj;       // last known value
    bool was_reset;           // since the fault began
    bool is_recovery_wanted;  // last report of the driver
};

/* The current fault of a GPU, as stored. */
struct gpu_trouble {
    enum gpu_fault fault;
    uint32_t xid;       // the Xid that caused it; 0: none
    uint64_t energy_mj; // value when it began: a lower one means that the GPU was reset
};

enum gpu_verdict { HEALTH_STAYS, HEALTH_DRAIN, HEALTH_RETURN };

/* Evaluates an observation of a GPU that has the fault `present`. When the verdict is to drain it, *ret is
 * the new fault. */
enum gpu_verdict gpu_health_evaluate(struct gpu_health *health, const struct health_settings *settings,
    const struct gpu_trouble *present, const struct gpu_observation *observation, struct gpu_trouble *ret);

/* The time at which the verdict could change without a new observation; INT64_MAX: never. */
int64_t gpu_health_next_ms(
    const struct gpu_health *health, const struct health_settings *settings, enum gpu_fault present);

/* "lost", "reset" and the like; "none". */
const char *gpu_fault_name(enum gpu_fault fault);

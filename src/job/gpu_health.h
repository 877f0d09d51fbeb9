/* SPDX-License-Identifier: MIT */
/*
 * When a GPU is taken out of use, and when it returns. Pure: a look at a GPU goes in, a verdict comes out.
 *
 *   fault      begins with                           ends by itself
 *   lost       it does not answer                    it answers for SEEN_MS
 *   unclean    something of a job is left for long   it is clean and unused for recover_ms
 *   contained  an Xid of that class                  it is well and unused for recover_ms
 *   reset      an Xid of that class, or the driver   the same, once it was reset
 *              wants it reset or the node rebooted
 *   device     an Xid of that class                  never
 *
 * A worse fault takes the place of a lesser one; whoever resumes the GPU ends any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/xid.h"

/* The numbers are on disk; the worse, the higher. */
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
    int64_t recover_ms; // how long a GPU must be well before it returns
    int64_t unclean_ms; // how long it may be unclean before it counts as a fault
};

/* What a sample shows of a GPU. */
struct gpu_look {
    int64_t now_ms;
    const struct gpu_xid *xids; // the last ones, in order of time
    size_t n_xids;
    bool is_lost, is_unclean, is_held;          // held: a job has it or a part of it
    uint64_t energy_mj;                         // counter; 0: not known
    bool is_recovery_known, is_recovery_wanted; // the driver says whether it has to be reset
};

/* What is remembered between looks; zero is the beginning. */
struct gpu_health {
    int64_t xid_ms;           // of the latest Xid that was judged
    int64_t well_since_ms;    // 0: it is not well
    int64_t unclean_since_ms; // 0: it is clean
    uint64_t energy_mj;       // the last that was known
    bool was_reset;           // since its fault began
    bool is_recovery_wanted;  // as the driver said last
};

/* The fault that a GPU has, as it is kept. */
struct gpu_trouble {
    enum gpu_fault fault;
    uint32_t xid;       // that was the reason; 0: none was
    uint64_t energy_mj; // when it began: less means that it was reset
};

enum gpu_verdict { HEALTH_STAYS, HEALTH_DRAIN, HEALTH_RETURN };

/* Looks at a GPU that has the fault `present`. *ret is what it has when it is drained. */
enum gpu_verdict gpu_health_look(struct gpu_health *health, const struct health_settings *settings,
    const struct gpu_trouble *present, const struct gpu_look *look, struct gpu_trouble *ret);

/* When the next look could give another verdict although nothing changes; INT64_MAX: never. */
int64_t gpu_health_next_ms(
    const struct gpu_health *health, const struct health_settings *settings, enum gpu_fault present);

/* "lost", "reset" and the like; "none". */
const char *gpu_fault_name(enum gpu_fault fault);

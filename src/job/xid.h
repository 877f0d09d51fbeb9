/* SPDX-License-Identifier: MIT */
/* Errors reported by NVIDIA's driver (Xids): the meaning and class of each number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/record.h"

#define GPU_XIDS_MAX 16U // remembered per GPU

/* Classes, least severe first. */
enum xid_class {
    XID_INFO,        // no action: displayed only
    XID_APPLICATION, // caused by the job; the GPU is fine
    XID_CONTAINED,   // a fault of the GPU that ends with the affected programs
    XID_RESET,       // a fault of the GPU that requires a reset
    XID_DEVICE,      // requires an administrator
    XID_CLASSES,
};

/* One error of one GPU. */
struct gpu_xid {
    uint32_t number;
    int64_t wall_ms; // identifies it: consecutive ones always differ. May go backwards if the clock is set
    int64_t boot_ms; // on the boot clock of the node
};

extern const struct record_type gpu_xid_record;

/* The index of the first error after the last one seen, identified by its wall_ms. If the list, which is
 * short, no longer contains that one, all errors are new. */
size_t xid_first_new(const struct gpu_xid *xids, size_t count, int64_t seen_ms);

/* XID_INFO for a number that is not in the table. */
enum xid_class xid_class_of(uint32_t number);

/* The error as the end of a sentence about the GPU; never NULL. */
const char *xid_words(uint32_t number);

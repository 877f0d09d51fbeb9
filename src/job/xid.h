/* SPDX-License-Identifier: MIT */
/* Errors that NVIDIA's driver reports (Xids): what each number means, and what follows from it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/record.h"

#define GPU_XIDS_MAX 16U // that a GPU remembers

/* What follows, the lightest first. */
enum xid_class {
    XID_INFO,        // nothing: it is shown
    XID_APPLICATION, // what the job did; the GPU is fine
    XID_CONTAINED,   // the GPU's fault, but over with the programs that it hit
    XID_RESET,       // the GPU's fault, and only a reset helps
    XID_DEVICE,      // somebody has to look at it
    XID_CLASSES,
};

/* One error of one GPU. */
struct gpu_xid {
    uint32_t number;
    int64_t wall_ms; // names it: no two in a row have the same. A clock that is set may make it go back
    int64_t boot_ms; // on the boot clock of the node
};

extern const struct record_type gpu_xid_record;

/* The index of the first error in a list that came after the one that was seen last, by its wall_ms. All did
 * if that one is no longer there: the list remembers few. */
size_t xid_first_new(const struct gpu_xid *xids, size_t count, int64_t seen_ms);

/* XID_INFO for a number that is not in the table. */
enum xid_class xid_class_of(uint32_t number);

/* What has happened, as the rest of a sentence about the GPU; never NULL. */
const char *xid_words(uint32_t number);

/* SPDX-License-Identifier: MIT */
/*
 * How the share of a GPU requested with -m or -g 0.5 is enforced. Pure: the agent tests which kinds work on
 * its node (agent/launch/share.h), and chooses one for SHARE_AUTO.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"
#include "job/event.h"

/* In order of strength: AUTO takes the last one that works on the node. */
enum share_kind {
    SHARE_NONE, // counted when jobs are placed, and not enforced
    SHARE_TIME, // GPU memory is watched: a job that stays above its share is ended
    SHARE_MPS,  // allocations above the share fail, for processes that use MPS; the others are watched
    SHARE_DMEM, // the kernel limits the job's cgroup
    SHARE_AUTO,
    SHARE_KINDS,
};

#define SHARE_NAMES   "auto, dmem, mps, time or none"
#define SHARE_OVER_MS 5000 // above its share for longer: the job is ended

#define SHARE_WHY_SIZE 160
#define SHARE_TEXT_MAX 512U

/* The kinds that a node offers; why_not is the reason for each kind that it does not. */
struct share_ways {
    bool is_available[SHARE_KINDS];
    char why_not[SHARE_KINDS][SHARE_WHY_SIZE];
    const char *regions; // the root cgroup's dmem.capacity, borrowed; NULL: there is none
};

/* Declares a kind unavailable. */
void share_ways_refuse(struct share_ways *ways, enum share_kind kind, const char *why);
/* The first region of the device at this PCI address ("0000:3b:00.0") in the text of dmem.capacity, lines of
 * region and bytes. The caller frees it; NULL: the driver has none, so that the memory of the device is not
 * charged. */
char *share_region(const char *regions, const char *pci);

/* The strongest available kind, SHARE_NONE if there is none. */
enum share_kind share_ways_strongest(const struct share_ways *ways);
/* "no dmem: ...; no mps: ...": the stronger kinds that are not available. The caller frees it; NULL: there
 * are none. */
char *share_ways_text(const struct share_ways *ways, enum share_kind kind);

const char *share_kind_name(enum share_kind kind);
/* NULL is SHARE_NONE; SHARE_KINDS: there is none of that name. */
enum share_kind share_kind_from_name(const char *name);

/* -EINVAL with a sentence and a hint: no such kind, or the request is not for a share of a GPU. */
int share_check(const struct job_ask *ask, struct error *err);

/* The bytes that an attempt may use on a granted GPU of this size, in whole MiB; 0: it is not shared, or its
 * size is unknown. */
uint64_t share_bytes(const struct gpu_grant *grant, uint64_t gpu_bytes);

/* Its percentage of the GPU's compute units, 1 to 100: 100 if no fraction was requested. */
uint32_t share_percent(const struct gpu_grant *grant);

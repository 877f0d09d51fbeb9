/* SPDX-License-Identifier: MIT */
/*
 * The node's GPUs by identity. A GPU is its UUID; the index that it got when it was first seen stays its own
 * until the machine is booted anew, whatever the driver's order, however often helpers and agents come and
 * go. A GPU that is not seen any more stays listed as lost.
 */
#pragma once

#include <stdbool.h>

#include "agent/gpu/report.h"
#include "agent/gpu/progress_page.h"
#include "base/strings.h"

struct gpu_roster;

/* Goes on where an agent of this boot left off in the directory `dirfd`, which is borrowed; -1: nothing is
 * kept. GPUs from there are lost until they are seen. */
struct gpu_roster *gpu_roster_new(int dirfd, const char *boot_id);
void gpu_roster_free(struct gpu_roster *roster);

/* The next report is of another helper process, which counts errors from 0. `is_beside`: it ran beside the
 * one before, so that what it has counted was counted already. */
void gpu_roster_change_source(struct gpu_roster *roster, bool is_beside);

/* Takes the GPUs out of a report of a working backend. What has no UUID, a senseless one or that of another
 * is dropped. */
void gpu_roster_take(struct gpu_roster *roster, struct gpu_report *report);

/* The GPU of that key does not answer: it is lost, and stays so in reports that leave it out. False when no
 * GPU is known by that key; then the key is kept. `why` NULL: it is lost
 * already, for the same reason. */
bool gpu_roster_hang(struct gpu_roster *roster, const char *key, const char *why);

/* Keys of no known GPU at which helpers hung, and an end to one of them. */
const struct strings *gpu_roster_keys(const struct gpu_roster *roster);
void gpu_roster_forget_key(struct gpu_roster *roster, const char *key);

/* All are lost. */
void gpu_roster_lose_all(struct gpu_roster *roster, const char *why);

/* The GPUs with these UUIDs are released, and no others: such a GPU counts as lost, whatever reports say of
 * it. When nothing has it open any more the owner of the helpers sets is_released in its state. True: that
 * changed something. */
bool gpu_roster_release(struct gpu_roster *roster, const struct strings *uuids);
bool gpu_roster_is_released(const struct gpu_roster *roster, size_t i);
size_t gpu_roster_count_released(const struct gpu_roster *roster);

/* Then no driver is even started, so that it can be unloaded. False where there are no GPUs. */
bool gpu_roster_is_all_released(const struct gpu_roster *roster);

/* Tells a new helper what it must not open; false when it cannot be told of so many GPUs. */
bool gpu_roster_set_progress(const struct gpu_roster *roster, struct gpu_progress *page);

/* A helper with this page opens what it should, and nothing that is released. */
bool gpu_roster_fits(const struct gpu_roster *roster, const struct gpu_progress *page);

/* All GPUs (struct gpu_state) by index, without gaps. The list is the roster's. */
struct record_list *gpu_roster_gpus(struct gpu_roster *roster);

/* True when the GPU at that position does not answer and is to be left out. */
bool gpu_roster_is_hung(const struct gpu_roster *roster, size_t i);

/* Of the GPUs that are listed; NULL: none were ever. */
const char *gpu_roster_backend(const struct gpu_roster *roster);

/* SPDX-License-Identifier: MIT */
/*
 * The node's GPUs by identity. A GPU is identified by its UUID; the index it is assigned when first seen is
 * kept until the next boot, regardless of the driver's order and of restarts of helpers and agents. A GPU
 * that disappears stays listed as lost.
 */
#pragma once

#include <stdbool.h>

#include "agent/gpu/progress_page.h"
#include "agent/gpu/report.h"
#include "base/strings.h"

struct gpu_roster;

/* The stored state. */
extern const struct record_type gpu_roster_record;

/* Loads the state of an earlier agent of this boot from the directory `dirfd`, which is borrowed; -1: nothing
 * is stored. GPUs from there are lost until they are seen. */
struct gpu_roster *gpu_roster_new(int dirfd, const char *boot_id);
void gpu_roster_free(struct gpu_roster *roster);

/* The next report comes from another helper process, which counts errors from 0. `is_beside`: it ran in
 * parallel with the previous one, so its errors have already been counted. */
void gpu_roster_change_source(struct gpu_roster *roster, bool is_beside);

/* Takes the GPUs from a report of a working backend. GPUs with a missing, invalid or duplicate UUID are
 * dropped. */
void gpu_roster_take(struct gpu_roster *roster, struct gpu_report *report);

/* The GPU with that key does not respond: it is lost, and stays so in reports that omit it. False if no GPU
 * has that key; the key is then stored. `why` NULL: it is already lost, for the same reason. */
bool gpu_roster_hang(struct gpu_roster *roster, const char *key, const char *why);

/* Keys of unknown GPUs at which helpers hung, and the removal of one. */
const struct strings *gpu_roster_keys(const struct gpu_roster *roster);
void gpu_roster_forget_key(struct gpu_roster *roster, const char *key);

/* Marks all as lost. */
void gpu_roster_lose_all(struct gpu_roster *roster, const char *why);

/* Releases exactly the GPUs with these UUIDs: they count as lost, whatever reports contain. The owner of the
 * helpers sets is_released in their state when no process has them open any more. True if that changed
 * anything. */
bool gpu_roster_release(struct gpu_roster *roster, const struct strings *uuids);
bool gpu_roster_is_released(const struct gpu_roster *roster, size_t i);
size_t gpu_roster_count_released(const struct gpu_roster *roster);

/* True if all are released: the driver is then not even started, so that it can be unloaded. False without
 * GPUs. */
bool gpu_roster_is_all_released(const struct gpu_roster *roster);

/* Sets which GPUs a new helper must not open; false if there are too many. */
bool gpu_roster_set_progress(const struct gpu_roster *roster, struct gpu_progress *page);

/* True if a helper with this page opens the right GPUs, and none that is released. */
bool gpu_roster_fits(const struct gpu_roster *roster, const struct gpu_progress *page);

/* All GPUs (struct gpu_state) by index, without gaps. The roster owns the list. */
struct record_list *gpu_roster_gpus(struct gpu_roster *roster);

/* True if the GPU at that position does not respond and must be excluded. */
bool gpu_roster_is_hung(const struct gpu_roster *roster, size_t i);

/* Of the listed GPUs; NULL: there never were any. */
const char *gpu_roster_backend(const struct gpu_roster *roster);

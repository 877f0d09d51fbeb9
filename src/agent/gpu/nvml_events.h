/* SPDX-License-Identifier: MIT */
/*
 * The driver's errors (Xids), which NVML tells only to somebody who waits for them: a thread of the GPU
 * helper process does.
 */
#pragma once

#include "agent/gpu/nvml_api.h"
#include "agent/gpu/progress_page.h"
#include "wire/message.h"

struct nvml_events;

/* Starts to wait for errors of the devices that tell them. NULL when none does or the driver cannot. `keys`
 * are the devices' for the page. */
struct nvml_events *nvml_events_start(const struct nvml_api *api, struct gpu_progress *page,
    const nvml_device *devices, const char *const *keys, size_t count);

/* Fills xid, xid_wall_ms and xid_count of the device at position `i`. NULL events: there were none. */
void nvml_events_read(struct nvml_events *events, size_t i, struct gpu_state *gpu);

/* Ends the thread; that takes as long as one wait, half a second. NULL is fine. */
void nvml_events_stop(struct nvml_events *events);

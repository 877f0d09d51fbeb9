/* SPDX-License-Identifier: MIT */
/*
 * The driver's errors (Xids). NVML reports them only to a thread that waits for them; it runs in the GPU
 * helper process.
 */
#pragma once

#include "agent/gpu/nvml_api.h"
#include "agent/gpu/progress_page.h"
#include "wire/message.h"

struct nvml_events;

/* Starts waiting for errors of the devices that report them. NULL if none does or the driver does not support
 * it. `keys` are the devices' keys for the page. */
struct nvml_events *nvml_events_start(const struct nvml_api *api, struct gpu_progress *page,
    const nvml_device *devices, const char *const *keys, size_t count);

/* Sets xid, xid_wall_ms and xid_count of the device at position `i`. NULL events: no errors. */
void nvml_events_read(struct nvml_events *events, size_t i, struct gpu_state *gpu);

/* The same for a MIG instance of that device: its own errors, and those of the device as a whole. */
void nvml_events_read_instance(
    struct nvml_events *events, size_t i, unsigned int gpu_instance, struct gpu_state *gpu);

/* Ends the thread, which takes up to half a second. NULL is allowed. */
void nvml_events_stop(struct nvml_events *events);

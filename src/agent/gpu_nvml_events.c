/* SPDX-License-Identifier: MIT */
#include "agent/gpu_nvml_events.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define WAIT_MS  500U
#define PAUSE_MS 1000 // after a failure, which may last: a lost GPU makes every wait fail

struct seen {
    uint32_t count;
    struct gpu_xid last[GPU_XIDS_MAX]; // a ring: the one after `count` errors is at count % GPU_XIDS_MAX
};

struct nvml_events {
    const struct nvml_api *api;
    nvml_event_set set;
    pthread_t thread;
    int stop_fd; // readable: leave
    size_t count;
    nvml_device *devices;
    pthread_mutex_t lock; // of what follows
    struct seen *seen;    // for each device
};

/* Errors are known by their times, so no two of a GPU have the same. */
static void note_xid(struct seen *seen, uint32_t number, int64_t wall_ms)
{
    int64_t before_ms = seen->count > 0 ? seen->last[(seen->count - 1) % GPU_XIDS_MAX].wall_ms : 0;
    seen->last[seen->count++ % GPU_XIDS_MAX] = (struct gpu_xid){
        .number = number,
        .wall_ms = wall_ms > before_ms ? wall_ms : before_ms + 1,
    };
}

static void take_event(struct nvml_events *events, const struct nvml_event *event)
{
    if ((event->type & NVML_EVENT_XID) == 0)
        return;
    for (size_t i = 0; i < events->count; i++) {
        if (events->devices[i] != event->device)
            continue;
        (void)pthread_mutex_lock(&events->lock);
        note_xid(&events->seen[i], (uint32_t)event->data, clock_wall_ms());
        (void)pthread_mutex_unlock(&events->lock);
    }
}

static void *wait_for_events(void *arg)
{
    struct nvml_events *events = arg;
    struct pollfd stop = { .fd = events->stop_fd, .events = POLLIN };
    int code = NVML_TIMEOUT;
    while (poll(&stop, 1, code == NVML_SUCCESS || code == NVML_TIMEOUT ? 0 : PAUSE_MS) <= 0) {
        struct nvml_event event = { 0 };
        code = events->api->event_wait(events->set, &event, WAIT_MS);
        if (code == NVML_SUCCESS)
            take_event(events, &event);
    }
    return NULL;
}

static bool can_wait(const struct nvml_api *api)
{
    return api->event_set_create != NULL && api->event_set_free != NULL && api->event_types != NULL &&
           api->event_register != NULL && api->event_wait != NULL;
}

/* How many devices will tell. */
static size_t register_devices(
    const struct nvml_events *events, struct gpu_stage *stage, const char *const *keys)
{
    size_t registered = 0;
    for (size_t i = 0; i < events->count; i++) {
        unsigned long long types = 0;
        gpu_stage_enter(stage, keys[i]);
        if (events->api->event_types(events->devices[i], &types) != NVML_SUCCESS ||
            (types & NVML_EVENT_XID) == 0)
            continue;
        registered +=
            events->api->event_register(events->devices[i], NVML_EVENT_XID, events->set) == NVML_SUCCESS;
    }
    return registered;
}

static void free_events(struct nvml_events *events)
{
    if (events->set != NULL)
        (void)events->api->event_set_free(events->set);
    if (events->stop_fd >= 0)
        (void)close(events->stop_fd);
    (void)pthread_mutex_destroy(&events->lock);
    free(events->devices);
    free(events->seen);
    free(events);
}

struct nvml_events *nvml_events_start(const struct nvml_api *api, struct gpu_stage *stage,
    const nvml_device *devices, const char *const *keys, size_t count)
{
    if (!can_wait(api) || count == 0)
        return NULL;
    struct nvml_events *events = xcalloc(1, sizeof(*events));
    events->api = api;
    events->count = count;
    events->devices = xcalloc(count, sizeof(*events->devices));
    memcpy(events->devices, devices, count * sizeof(*devices));
    events->seen = xcalloc(count, sizeof(*events->seen));
    (void)pthread_mutex_init(&events->lock, NULL);
    events->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (events->stop_fd < 0 || api->event_set_create(&events->set) != NVML_SUCCESS ||
        register_devices(events, stage, keys) == 0 ||
        pthread_create(&events->thread, NULL, wait_for_events, events) != 0) {
        free_events(events);
        return NULL;
    }
    return events;
}

static void copy_seen(const struct seen *seen, struct gpu_state *gpu)
{
    uint32_t count = seen->count < GPU_XIDS_MAX ? seen->count : GPU_XIDS_MAX;
    struct gpu_xid *xids = xreallocarray(gpu->xids.items, count, sizeof(*xids));
    for (uint32_t k = 0; k < count; k++)
        xids[k] = seen->last[(seen->count - count + k) % GPU_XIDS_MAX];
    gpu->xids = (struct record_list){ xids, count };
    gpu->xid = xids[count - 1].number;
    gpu->xid_wall_ms = xids[count - 1].wall_ms;
    gpu->xid_count = seen->count;
}

void nvml_events_read(struct nvml_events *events, size_t i, struct gpu_state *gpu)
{
    if (events == NULL)
        return;
    (void)pthread_mutex_lock(&events->lock);
    if (events->seen[i].count > gpu->xid_count)
        copy_seen(&events->seen[i], gpu);
    (void)pthread_mutex_unlock(&events->lock);
}

void nvml_events_stop(struct nvml_events *events)
{
    if (events == NULL)
        return;
    (void)eventfd_write(events->stop_fd, 1);
    (void)pthread_join(events->thread, NULL);
    free_events(events);
}

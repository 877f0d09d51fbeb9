/* SPDX-License-Identifier: MIT */
#include "agent/gpu/nvml_events.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define WAIT_MS            500U
#define NVML_GPU_INSTANCES 16U // ids of GPU instances; the highest possible is 14
#define PAUSE_MS           1000 // after a failure, which may persist: a lost GPU makes every wait of its set fail

struct seen {
    uint32_t count;
    struct gpu_xid last[GPU_XIDS_MAX]; // a ring: the one after `count` errors is at count % GPU_XIDS_MAX
};

/* Each GPU has its own set, because one that is lost makes every wait for its set fail. */
struct watch {
    struct nvml_events *events;
    nvml_event_set set; // NULL: it reports no errors
    pthread_t thread;
    bool is_running;
    struct seen seen;
    struct seen instances[NVML_GPU_INSTANCES]; // the errors of each instance, and of the GPU as a whole
};

struct nvml_events {
    const struct nvml_api *api;
    int stop_fd; // readable: leave
    size_t count;
    struct watch *watches;
    pthread_mutex_t lock; // protects the errors seen
};

static bool is_named(const struct seen *seen, int64_t wall_ms)
{
    uint32_t count = seen->count < GPU_XIDS_MAX ? seen->count : GPU_XIDS_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (seen->last[i].wall_ms == wall_ms)
            return true;
    return false;
}

/* Errors are identified by their times, so no two remembered errors have the same time. */
static void note_xid(struct seen *seen, uint32_t number, int64_t wall_ms, int64_t boot_ms)
{
    while (is_named(seen, wall_ms))
        wall_ms++;
    seen->last[seen->count++ % GPU_XIDS_MAX] = (struct gpu_xid){
        .number = number,
        .wall_ms = wall_ms,
        .boot_ms = boot_ms,
    };
}

static void take_event(struct watch *watch, const struct nvml_event *event)
{
    if ((event->type & NVML_EVENT_XID) == 0)
        return;
    int64_t wall_ms = clock_wall_ms(), boot_ms = clock_boot_ms();
    (void)pthread_mutex_lock(&watch->events->lock);
    note_xid(&watch->seen, (uint32_t)event->data, wall_ms, boot_ms);
    for (unsigned int i = 0; i < NVML_GPU_INSTANCES; i++)
        if (event->gpu_instance == i || event->gpu_instance >= NVML_GPU_INSTANCES)
            note_xid(&watch->instances[i], (uint32_t)event->data, wall_ms, boot_ms);
    (void)pthread_mutex_unlock(&watch->events->lock);
}

static void *wait_for_events(void *arg)
{
    struct watch *watch = arg;
    const struct nvml_events *events = watch->events;
    struct pollfd stop = { .fd = events->stop_fd, .events = POLLIN };
    int code = NVML_TIMEOUT;
    while (poll(&stop, 1, code == NVML_SUCCESS || code == NVML_TIMEOUT ? 0 : PAUSE_MS) <= 0) {
        struct nvml_event event = { .gpu_instance = NVML_INSTANCE_NONE };
        code = events->api->event_wait(watch->set, &event, WAIT_MS);
        if (code == NVML_SUCCESS)
            take_event(watch, &event);
    }
    return NULL;
}

static bool can_wait(const struct nvml_api *api)
{
    return api->event_set_create != NULL && api->event_set_free != NULL && api->event_types != NULL &&
           api->event_register != NULL && api->event_wait != NULL;
}

/* A GPU that cannot report errors is treated as one without errors. */
static void start_watch(struct watch *watch, nvml_device device)
{
    const struct nvml_api *api = watch->events->api;
    unsigned long long types = 0;
    if (api->event_types(device, &types) != NVML_SUCCESS || (types & NVML_EVENT_XID) == 0 ||
        api->event_set_create(&watch->set) != NVML_SUCCESS)
        return;
    watch->is_running = api->event_register(device, NVML_EVENT_XID, watch->set) == NVML_SUCCESS &&
                        pthread_create(&watch->thread, NULL, wait_for_events, watch) == 0;
}

struct nvml_events *nvml_events_start(const struct nvml_api *api, struct gpu_progress *page,
    const nvml_device *devices, const char *const *keys, size_t count)
{
    int stop_fd = can_wait(api) && count > 0 ? eventfd(0, EFD_CLOEXEC) : -1;
    if (stop_fd < 0)
        return NULL;
    struct nvml_events *events = xcalloc(1, sizeof(*events));
    events->api = api;
    events->stop_fd = stop_fd;
    events->count = count;
    events->watches = xcalloc(count, sizeof(*events->watches));
    (void)pthread_mutex_init(&events->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        gpu_progress_enter(page, keys[i]);
        events->watches[i].events = events;
        start_watch(&events->watches[i], devices[i]);
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

static void read_seen(struct nvml_events *events, const struct seen *seen, struct gpu_state *gpu)
{
    (void)pthread_mutex_lock(&events->lock);
    if (seen->count > gpu->xid_count)
        copy_seen(seen, gpu);
    (void)pthread_mutex_unlock(&events->lock);
}

void nvml_events_read(struct nvml_events *events, size_t i, struct gpu_state *gpu)
{
    if (events != NULL)
        read_seen(events, &events->watches[i].seen, gpu);
}

void nvml_events_read_instance(
    struct nvml_events *events, size_t i, unsigned int gpu_instance, struct gpu_state *gpu)
{
    if (events != NULL && gpu_instance < NVML_GPU_INSTANCES)
        read_seen(events, &events->watches[i].instances[gpu_instance], gpu);
}

void nvml_events_stop(struct nvml_events *events)
{
    if (events == NULL)
        return;
    (void)eventfd_write(events->stop_fd, 1);
    for (size_t i = 0; i < events->count; i++) {
        if (events->watches[i].is_running)
            (void)pthread_join(events->watches[i].thread, NULL);
        if (events->watches[i].set != NULL)
            (void)events->api->event_set_free(events->watches[i].set);
    }
    (void)close(events->stop_fd);
    (void)pthread_mutex_destroy(&events->lock);
    free(events->watches);
    free(events);
}

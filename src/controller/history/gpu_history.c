/* SPDX-License-Identifier: MIT */
/*
 * Two rings per GPU, indexed by time, so gaps cost nothing. They use the wall clock, because users query by
 * it: if it is set forward, the time in between is unknown; if it is set back, later values are dropped.
 */
#include "controller/history/gpu_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/history/gpu_history_private.h"
#include "wire/message.h"

#define JITTER_SLOTS                                                                                         \
    2 // a timer that is a little late misses a second, a clock that is slewed shows one twice

static const struct history_sample nothing = { { HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN,
    HISTORY_NOT_KNOWN } };
static const struct history_point no_point = {
    { { HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN } },
    { { HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN } },
};

struct gpu_history *gpu_history_new(void)
{
    return xcalloc(1, sizeof(struct gpu_history));
}

static void clear_gpu(struct history_gpu *gpu)
{
    free(gpu->seconds);
    free(gpu->minutes);
}

void gpu_history_free(struct gpu_history *history)
{
    if (history == NULL)
        return;
    for (size_t i = 0; i < history->count; i++)
        clear_gpu(&history->gpus[i]);
    free(history->gpus);
    free(history);
}

static struct history_gpu *find_from(const struct gpu_history *history, size_t first, const char *uuid)
{
    for (size_t i = 0; i < history->count; i++) {
        struct history_gpu *gpu = &history->gpus[(first + i) % history->count];
        if (strcmp(gpu->uuid, uuid) == 0)
            return gpu;
    }
    return NULL;
}

static struct history_gpu *find(const struct gpu_history *history, const char *uuid)
{
    return find_from(history, 0, uuid);
}

void history_forget(struct gpu_history *history, int64_t minute)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (history->gpus[i].now.minute < minute)
            clear_gpu(&history->gpus[i]);
        else
            history->gpus[kept++] = history->gpus[i];
    }
    history->count = kept;
}

struct history_gpu *history_gpu_take(struct gpu_history *history, const char *uuid)
{
    struct history_gpu *known = find_from(history, history->next, uuid);
    history->next = known != NULL ? (size_t)(known - history->gpus) + 1 : 0;
    if (known != NULL || history->count == HISTORY_GPUS_MAX || strlen(uuid) >= HISTORY_UUID_SIZE)
        return known;
    history->gpus = xreallocarray(history->gpus, history->count + 1, sizeof(*history->gpus));
    struct history_gpu *gpu = &history->gpus[history->count++];
    *gpu = (struct history_gpu){
        .seconds = xcalloc(HISTORY_SECONDS, sizeof(struct history_sample)),
        .minutes = xcalloc(HISTORY_MINUTES, sizeof(struct history_point)),
    };
    memcpy(gpu->uuid, uuid, strlen(uuid) + 1);
    return gpu;
}

/* --- rings --- */

/* Slots that must be made unknown before `slot` can be written: *ret_first up to `slot` - 1. */
static bool advance(struct history_ring *ring, int64_t slot, uint32_t size, int64_t *ret_first)
{
    if (ring->count > 0 && slot <= ring->newest) {
        *ret_first = slot;
        return slot == ring->newest;
    }
    bool is_far = ring->count == 0 || slot - ring->newest >= size;
    *ret_first = is_far ? slot : ring->newest + 1;
    uint64_t count = is_far ? 1 : ring->count + (uint64_t)(slot - ring->newest);
    ring->count = count < size ? (uint32_t)count : size;
    ring->newest = slot;
    return true;
}

/* The clock was set back: later slots are dropped. */
static void rewind_to(struct history_ring *ring, int64_t slot)
{
    int64_t back = ring->newest - slot;
    if (ring->count == 0 || back <= 0)
        return;
    ring->count = back < ring->count ? ring->count - (uint32_t)back : 0;
    ring->newest = slot;
}

static bool holds(const struct history_ring *ring, int64_t slot)
{
    return ring->count > 0 && slot <= ring->newest && slot > ring->newest - ring->count;
}

bool history_put_second(struct history_gpu *gpu, int64_t second, const struct history_sample *sample)
{
    int64_t slot = 0;
    if (!advance(&gpu->seconds_ring, second, HISTORY_SECONDS, &slot))
        return false;
    for (; slot < second; slot++)
        gpu->seconds[slot % HISTORY_SECONDS] = nothing;
    gpu->seconds[second % HISTORY_SECONDS] = *sample;
    return true;
}

bool history_put_minute(struct history_gpu *gpu, int64_t minute, const struct history_point *point)
{
    int64_t slot = 0;
    if (!advance(&gpu->minutes_ring, minute, HISTORY_MINUTES, &slot))
        return false;
    for (; slot < minute; slot++)
        gpu->minutes[slot % HISTORY_MINUTES] = no_point;
    gpu->minutes[minute % HISTORY_MINUTES] = *point;
    return true;
}

/* --- samples --- */

static void add_value(struct history_minute *now, size_t which, uint16_t mean, uint16_t max)
{
    if (mean == HISTORY_NOT_KNOWN)
        return;
    now->sums[which] += mean;
    now->counts[which]++;
    if (max > now->max[which])
        now->max[which] = max;
}

static void read_minute(const struct history_minute *now, struct history_point *ret)
{
    *ret = no_point;
    for (size_t i = 0; i < HISTORY_VALUES; i++) {
        if (now->counts[i] == 0)
            continue;
        ret->mean.values[i] = (uint16_t)((now->sums[i] + now->counts[i] / 2) / now->counts[i]);
        ret->max.values[i] = now->max[i];
    }
}

static uint16_t limited(uint64_t value)
{
    return value < HISTORY_NOT_KNOWN ? (uint16_t)value : HISTORY_NOT_KNOWN - 1;
}

static void read_state(const struct gpu_state *state, struct history_sample *ret)
{
    *ret = nothing;
    if (state->is_lost != 0)
        return;
    if ((state->valid & GPU_UTILIZATION) != 0)
        ret->values[HISTORY_BUSY] = limited(state->utilization_percent);
    if ((state->valid & GPU_MEMORY_USED) != 0 && state->memory_bytes >= 1000)
        ret->values[HISTORY_MEMORY] = limited(state->memory_used_bytes / (state->memory_bytes / 1000));
    if ((state->valid & GPU_POWER) != 0)
        ret->values[HISTORY_POWER] = limited((state->power_mw + 500) / 1000);
    if ((state->valid & GPU_TEMPERATURE) != 0)
        ret->values[HISTORY_CELSIUS] = limited(state->temperature_c);
}

static void add_sample(struct history_gpu *gpu, int64_t second, const struct history_sample *sample)
{
    int64_t minute = second / HISTORY_MINUTE_S;
    if (second < gpu->seconds_ring.newest && second + JITTER_SLOTS >= gpu->seconds_ring.newest)
        second = gpu->seconds_ring.newest;
    rewind_to(&gpu->seconds_ring, second);
    if (minute < gpu->now.minute && second + JITTER_SLOTS < gpu->now.minute * HISTORY_MINUTE_S) {
        rewind_to(&gpu->minutes_ring, minute - 1);
        gpu->now = (struct history_minute){ .minute = minute };
    }
    if (minute > gpu->now.minute) {
        struct history_point point;
        read_minute(&gpu->now, &point);
        if (gpu->now.minute != 0)
            (void)history_put_minute(gpu, gpu->now.minute, &point);
        gpu->now = (struct history_minute){ .minute = minute };
    }
    if (gpu->seconds_ring.count > 0 && second - gpu->seconds_ring.newest <= JITTER_SLOTS)
        for (int64_t slot = gpu->seconds_ring.newest + 1; slot < second; slot++)
            (void)history_put_second(gpu, slot, sample);
    (void)history_put_second(gpu, second, sample);
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        add_value(&gpu->now, i, sample->values[i], sample->values[i]);
}

void gpu_history_add(struct gpu_history *history, int64_t wall_ms, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    if (wall_ms <= 0)
        return;
    for (size_t i = 0; i < gpus->count; i++) {
        struct history_sample sample;
        struct history_gpu *gpu = states[i].uuid != NULL ? history_gpu_take(history, states[i].uuid) : NULL;
        if (gpu == NULL)
            continue;
        read_state(&states[i], &sample);
        add_sample(gpu, wall_ms / 1000, &sample);
    }
}

/* --- reading --- */

static void add_point(struct history_minute *sum, const struct history_point *point)
{
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        add_value(sum, i, point->mean.values[i], point->max.values[i]);
}

static void add_slot(const struct history_gpu *gpu, bool is_second, int64_t slot, struct history_minute *sum)
{
    struct history_point point = no_point;
    if (is_second && holds(&gpu->seconds_ring, slot))
        point.mean = point.max = gpu->seconds[slot % HISTORY_SECONDS];
    else if (!is_second && slot == gpu->now.minute)
        read_minute(&gpu->now, &point);
    else if (!is_second && holds(&gpu->minutes_ring, slot))
        point = gpu->minutes[slot % HISTORY_MINUTES];
    add_point(sum, &point);
}

void gpu_history_read(const struct gpu_history *history, const char *uuid, int64_t from_s, uint32_t step_s,
    struct history_point *points, size_t count)
{
    const struct history_gpu *gpu = find(history, uuid);
    bool is_second = step_s < HISTORY_MINUTE_S;
    int64_t slots = is_second ? step_s : step_s / HISTORY_MINUTE_S;
    int64_t first = is_second ? from_s : from_s / HISTORY_MINUTE_S;
    for (size_t i = 0; i < count; i++) {
        struct history_minute sum = { 0 };
        for (int64_t k = 0; gpu != NULL && k < slots; k++)
            add_slot(gpu, is_second, first + (int64_t)i * slots + k, &sum);
        read_minute(&sum, &points[i]);
    }
}

size_t gpu_history_count(const struct gpu_history *history)
{
    return history->count;
}

size_t gpu_history_bytes(const struct gpu_history *history)
{
    return sizeof(*history) + history->count * (sizeof(struct history_gpu) + HISTORY_GPU_BYTES);
}

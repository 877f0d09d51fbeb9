/* SPDX-License-Identifier: MIT */
/*
 * Two rings per GPU, indexed by time, so gaps need no memory. If there are so many GPUs that they would
 * exceed the limit, the level rises: new GPUs have coarser steps, and the others are converted, a few per
 * second. They use the wall clock, because users query by it. If it is set forward, the time in between is
 * unknown; if it is set back, later values are dropped.
 */
#include "controller/history/gpu_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/history/gpu_history_private.h"
#include "wire/message.h"

/* A timer that is slightly late misses a second; a clock that is slewed shows one twice. */
#define JITTER_SLOTS  2
#define CONVERTED_MAX 64U // GPUs converted per second

const struct history_level history_levels[HISTORY_LEVELS] = { { 1, 1 }, { 2, 5 }, { 5, 15 }, { 10, 30 },
    { 30, 60 }, { 60, 240 } };

static const struct history_sample nothing = { { HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN,
    HISTORY_NOT_KNOWN } };
static const struct history_point no_point = {
    { { HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN } },
    { { HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN, HISTORY_NOT_KNOWN } },
};

uint32_t history_seconds(unsigned level)
{
    return HISTORY_SECONDS / history_levels[level].second_s;
}

uint32_t history_minutes(unsigned level)
{
    return HISTORY_MINUTES / history_levels[level].minute_m;
}

/* The memory of one GPU at this level. */
static size_t level_bytes(unsigned level)
{
    return sizeof(struct history_gpu) + history_seconds(level) * sizeof(struct history_sample) +
           history_minutes(level) * sizeof(struct history_point);
}

static int64_t step_of(const struct history_gpu *gpu, bool is_second)
{
    const struct history_level *level = &history_levels[gpu->level];
    return is_second ? level->second_s : level->minute_m;
}

int64_t history_newest_minute(const struct history_gpu *gpu)
{
    return gpu->second.slot * step_of(gpu, true) / HISTORY_MINUTE_S;
}

struct gpu_history *gpu_history_new(void)
{
    return xcalloc(1, sizeof(struct gpu_history));
}

static void gpu_free(struct history_gpu *gpu)
{
    free(gpu->seconds);
    free(gpu->minutes);
    free(gpu);
}

void gpu_history_free(struct gpu_history *history)
{
    if (history == NULL)
        return;
    history_save_free(history->save);
    for (size_t i = 0; i < history->count; i++)
        gpu_free(history->gpus[i]);
    free(history->gpus);
    name_table_clear(&history->names);
    free(history);
}

static struct history_gpu *find(const struct gpu_history *history, const char *uuid)
{
    size_t at = name_table_find(&history->names, uuid);
    return at != NAME_NONE ? history->gpus[at] : NULL;
}

void history_forget(struct gpu_history *history, int64_t minute)
{
    size_t kept = 0;
    for (size_t i = 0; i < history->count; i++) {
        if (history_newest_minute(history->gpus[i]) < minute)
            gpu_free(history->gpus[i]);
        else
            history->gpus[kept++] = history->gpus[i];
    }
    if (kept == history->count)
        return;
    history->count = kept;
    name_table_clear(&history->names);
    for (size_t i = 0; i < kept; i++)
        name_table_add(&history->names, history->gpus[i]->uuid, i);
}

static void allocate(struct history_gpu *gpu, unsigned level)
{
    gpu->level = level;
    gpu->seconds = xcalloc(history_seconds(level), sizeof(struct history_sample));
    gpu->minutes = xcalloc(history_minutes(level), sizeof(struct history_point));
}

/* The level at which this many GPUs fit; HISTORY_LEVELS if there is none. */
static unsigned level_for(size_t count)
{
    unsigned level = 0;
    while (level < HISTORY_LEVELS && count * level_bytes(level) > HISTORY_BYTES_MAX)
        level++;
    return level;
}

struct history_gpu *history_gpu_take(struct gpu_history *history, const char *uuid, unsigned level)
{
    struct history_gpu *known = find(history, uuid);
    unsigned least = level_for(history->count + 1);
    if (known != NULL || least == HISTORY_LEVELS || strlen(uuid) >= HISTORY_UUID_SIZE)
        return known;
    history->level = least > history->level ? least : history->level;
    history->gpus = xreallocarray(history->gpus, history->count + 1, sizeof(struct history_gpu *));
    struct history_gpu *gpu = history->gpus[history->count++] = xcalloc(1, sizeof(*gpu));
    allocate(gpu, level > history->level ? level : history->level);
    memcpy(gpu->uuid, uuid, strlen(uuid) + 1);
    name_table_add(&history->names, gpu->uuid, history->count - 1);
    return gpu;
}

/* --- rings --- */

/* Finds the slots that must be made unknown before `slot` can be written: *ret_first up to `slot` - 1. */
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

bool history_put_second(struct history_gpu *gpu, int64_t put, const struct history_sample *sample)
{
    int64_t slot = 0, size = history_seconds(gpu->level);
    if (!advance(&gpu->seconds_ring, put, (uint32_t)size, &slot))
        return false;
    for (; slot < put; slot++)
        gpu->seconds[slot % size] = nothing;
    gpu->seconds[put % size] = *sample;
    return true;
}

bool history_put_minute(struct history_gpu *gpu, int64_t put, const struct history_point *point)
{
    int64_t slot = 0, size = history_minutes(gpu->level);
    if (!advance(&gpu->minutes_ring, put, (uint32_t)size, &slot))
        return false;
    for (; slot < put; slot++)
        gpu->minutes[slot % size] = no_point;
    gpu->minutes[put % size] = *point;
    return true;
}

/* --- samples --- */

static void add_value(struct history_sum *now, size_t which, uint16_t mean, uint16_t max)
{
    if (mean == HISTORY_NOT_KNOWN)
        return;
    now->sums[which] += mean;
    now->counts[which]++;
    if (max > now->max[which])
        now->max[which] = max;
}

static void read_sum(const struct history_sum *now, struct history_point *ret)
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

/* The slot has ended, and is added to its ring. */
static void next_minute(struct history_gpu *gpu, int64_t slot)
{
    struct history_point point;
    read_sum(&gpu->now, &point);
    if (gpu->now.slot != 0)
        (void)history_put_minute(gpu, gpu->now.slot, &point);
    gpu->now = (struct history_sum){ .slot = slot };
}

static void put_sample(struct history_gpu *gpu, int64_t slot, const struct history_sample *sample)
{
    struct history_point point;
    if (step_of(gpu, true) == 1 || gpu->second.slot != slot)
        gpu->second = (struct history_sum){ .slot = slot };
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        add_value(&gpu->second, i, sample->values[i], sample->values[i]);
    read_sum(&gpu->second, &point);
    if (gpu->seconds_ring.count > 0 && slot - gpu->seconds_ring.newest <= JITTER_SLOTS)
        for (int64_t missed = gpu->seconds_ring.newest + 1; missed < slot; missed++)
            (void)history_put_second(gpu, missed, sample);
    (void)history_put_second(gpu, slot, &point.mean);
}

static void add_sample(struct history_gpu *gpu, int64_t wall_s, const struct history_sample *sample)
{
    int64_t minute_s = step_of(gpu, false) * HISTORY_MINUTE_S;
    int64_t second = wall_s / step_of(gpu, true), minute = wall_s / minute_s;
    if (second < gpu->seconds_ring.newest && second + JITTER_SLOTS >= gpu->seconds_ring.newest)
        second = gpu->seconds_ring.newest;
    rewind_to(&gpu->seconds_ring, second);
    if (minute < gpu->now.slot && wall_s + JITTER_SLOTS < gpu->now.slot * minute_s) {
        rewind_to(&gpu->minutes_ring, minute - 1);
        gpu->now = (struct history_sum){ .slot = minute };
    }
    if (minute > gpu->now.slot)
        next_minute(gpu, minute);
    put_sample(gpu, second, sample);
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        add_value(&gpu->now, i, sample->values[i], sample->values[i]);
}

/* Not all at once, which would take a large part of a second. */
static void convert_some(struct gpu_history *history, struct history_gpu *gpu, int64_t second)
{
    if (gpu->level >= history->level)
        return;
    if (history->converted_s != second)
        history->n_converted = 0;
    history->converted_s = second;
    if (history->n_converted++ < CONVERTED_MAX)
        history_coarsen(gpu, history->level);
}

void gpu_history_add(struct gpu_history *history, int64_t wall_ms, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    if (wall_ms <= 0)
        return;
    for (size_t i = 0; i < gpus->count; i++) {
        struct history_sample sample;
        struct history_gpu *gpu =
            states[i].uuid != NULL ? history_gpu_take(history, states[i].uuid, 0) : NULL;
        if (gpu == NULL)
            continue;
        convert_some(history, gpu, wall_ms / 1000);
        read_state(&states[i], &sample);
        add_sample(gpu, wall_ms / 1000, &sample);
    }
}

/* --- reading --- */

static void add_point(struct history_sum *sum, const struct history_point *point)
{
    for (size_t i = 0; i < HISTORY_VALUES; i++)
        add_value(sum, i, point->mean.values[i], point->max.values[i]);
}

/* Adds the values of one second or minute. */
static void add_unit(const struct history_gpu *gpu, bool is_second, int64_t unit, struct history_sum *sum)
{
    struct history_point point = no_point;
    int64_t slot = unit / step_of(gpu, is_second);
    if (is_second && holds(&gpu->seconds_ring, slot))
        point.mean = point.max = gpu->seconds[slot % history_seconds(gpu->level)];
    else if (!is_second && slot == gpu->now.slot)
        read_sum(&gpu->now, &point);
    else if (!is_second && holds(&gpu->minutes_ring, slot))
        point = gpu->minutes[slot % history_minutes(gpu->level)];
    add_point(sum, &point);
}

/* The mean of `count` seconds or minutes. */
static void read_units(
    const struct history_gpu *gpu, bool is_second, int64_t first, int64_t count, struct history_point *ret)
{
    struct history_sum sum = { 0 };
    for (int64_t i = 0; gpu != NULL && i < count; i++)
        add_unit(gpu, is_second, first + i, &sum);
    read_sum(&sum, ret);
}

void gpu_history_read(const struct gpu_history *history, const char *uuid, int64_t from_s, uint32_t step_s,
    struct history_point *points, size_t count)
{
    const struct history_gpu *gpu = find(history, uuid);
    bool is_second = step_s < HISTORY_MINUTE_S;
    int64_t units = is_second ? step_s : step_s / HISTORY_MINUTE_S;
    int64_t first = is_second ? from_s : from_s / HISTORY_MINUTE_S;
    for (size_t i = 0; i < count; i++)
        read_units(gpu, is_second, first + (int64_t)i * units, units, &points[i]);
}

/* Converts the values of the finer ring to the steps of the coarser one. */
static void convert_ring(const struct history_gpu *from, struct history_gpu *to, bool is_second)
{
    const struct history_ring *ring = is_second ? &from->seconds_ring : &from->minutes_ring;
    int64_t fine = step_of(from, is_second), coarse = step_of(to, is_second);
    int64_t first = (ring->newest - ring->count + 1) * fine / coarse, last = ring->newest * fine / coarse;
    for (int64_t slot = first; ring->count > 0 && slot <= last; slot++) {
        struct history_point point;
        read_units(from, is_second, slot * coarse, coarse, &point);
        if (is_second)
            (void)history_put_second(to, slot, &point.mean);
        else
            (void)history_put_minute(to, slot, &point);
    }
}

void history_coarsen(struct history_gpu *gpu, unsigned level)
{
    struct history_gpu from = *gpu;
    memset(&gpu->seconds_ring, 0, sizeof(gpu->seconds_ring));
    memset(&gpu->minutes_ring, 0, sizeof(gpu->minutes_ring));
    allocate(gpu, level);
    convert_ring(&from, gpu, true);
    convert_ring(&from, gpu, false);
    gpu->second.slot = from.second.slot * step_of(&from, true) / step_of(gpu, true);
    gpu->now.slot = from.now.slot * step_of(&from, false) / step_of(gpu, false);
    free(from.seconds);
    free(from.minutes);
}

size_t gpu_history_count(const struct gpu_history *history)
{
    return history->count;
}

unsigned gpu_history_level(const struct gpu_history *history)
{
    return history->level;
}

size_t gpu_history_bytes(const struct gpu_history *history)
{
    size_t bytes = sizeof(*history);
    for (size_t i = 0; i < history->count; i++)
        bytes += level_bytes(history->gpus[i]->level);
    return bytes;
}

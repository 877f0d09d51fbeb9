/* SPDX-License-Identifier: MIT */
/* Internals of the GPU history, for gpu_history.c and gpu_history_file.c. */
#pragma once

#include "controller/history/gpu_history.h"

#define HISTORY_UUID_SIZE 96U

/* Slots are seconds or minutes since 1970; slot s is stored at s % size. */
struct history_ring {
    int64_t newest; // slot
    uint32_t count; // number of slots in use, up to the newest
};

/* The current minute. */
struct history_minute {
    int64_t minute;
    uint32_t sums[HISTORY_VALUES], counts[HISTORY_VALUES];
    uint16_t max[HISTORY_VALUES];
};

struct history_gpu {
    char uuid[HISTORY_UUID_SIZE];
    struct history_ring seconds_ring, minutes_ring;
    struct history_minute now;
    struct history_sample *seconds; // HISTORY_SECONDS
    struct history_point *minutes;  // HISTORY_MINUTES
};

struct gpu_history {
    struct history_gpu *gpus;
    size_t count;
    size_t next;          // expected position of the next one: nodes report GPUs in the same order
    int64_t whole_minute; // contained in the whole file up to this minute
};

/* NULL if there are too many. */
struct history_gpu *history_gpu_take(struct gpu_history *history, const char *uuid);

/* Advances to this slot; skipped slots are unknown. False if it is older than the newest. */
bool history_put_second(struct history_gpu *gpu, int64_t second, const struct history_sample *sample);
bool history_put_minute(struct history_gpu *gpu, int64_t minute, const struct history_point *point);

/* Removes GPUs last seen before this minute. */
void history_forget(struct gpu_history *history, int64_t minute);

/* SPDX-License-Identifier: MIT */
/* The inside of the GPU history, for gpu_history.c and gpu_history_file.c. */
#pragma once

#include "controller/history/gpu_history.h"

#define HISTORY_UUID_SIZE 96U

/* Slots are numbers of seconds or minutes since 1970; slot s lies at s % size. */
struct history_ring {
    int64_t newest; // slot
    uint32_t count; // slots that hold something, up to the newest
};

/* The minute that is going on. */
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
    size_t next;          // where the next one is likely to be: nodes tell them in the same order
    int64_t whole_minute; // up to which the whole file has it
};

/* NULL when there are too many. */
struct history_gpu *history_gpu_take(struct gpu_history *history, const char *uuid);

/* Makes room for the slot: those in between are unknown. False for one that is older than the newest. */
bool history_put_second(struct history_gpu *gpu, int64_t second, const struct history_sample *sample);
bool history_put_minute(struct history_gpu *gpu, int64_t minute, const struct history_point *point);

/* GPUs that were seen last before this minute are forgotten. */
void history_forget(struct gpu_history *history, int64_t minute);

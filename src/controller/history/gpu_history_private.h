/* SPDX-License-Identifier: MIT */
/* Internals of the GPU history, for gpu_history.c and gpu_history_file.c. */
#pragma once

#include "base/containers/name_table.h"
#include "controller/history/gpu_history.h"

#define HISTORY_UUID_SIZE 96U

/* Slots are steps of the GPU's level since 1970; slot s is stored at s % size. */
struct history_ring {
    int64_t newest; // slot
    uint32_t count; // number of slots in use, up to the newest
};

/* Values of a slot that has not ended. */
struct history_sum {
    int64_t slot;
    uint32_t sums[HISTORY_VALUES], counts[HISTORY_VALUES];
    uint16_t max[HISTORY_VALUES];
};

struct history_gpu {
    char uuid[HISTORY_UUID_SIZE];
    uint32_t level;
    struct history_ring seconds_ring, minutes_ring;
    struct history_sum second, now; // of each ring
    struct history_sample *seconds; // history_seconds()
    struct history_point *minutes;  // history_minutes()
};

struct history_save; // gpu_history_file.c

struct gpu_history {
    struct history_gpu **gpus;
    size_t count;
    struct name_table names; // of the GPUs
    unsigned level;          // of new GPUs; finer ones are converted when they are next sampled
    int64_t converted_s;     // second in which the last was
    unsigned n_converted;    // in that second
    int64_t whole_minute;    // contained in the whole file up to this minute
    struct history_save *save;
};

/* The sizes of the rings at this level. */
uint32_t history_seconds(unsigned level);
uint32_t history_minutes(unsigned level);

/* The minute in which its newest sample is; 0: none. */
int64_t history_newest_minute(const struct history_gpu *gpu);

/* NULL if there are too many. `level`: of a new one. */
struct history_gpu *history_gpu_take(struct gpu_history *history, const char *uuid, unsigned level);

/* Gives it coarser steps. */
void history_coarsen(struct history_gpu *gpu, unsigned level);

/* Advances to this slot; skipped slots are unknown. False if it is older than the newest. */
bool history_put_second(struct history_gpu *gpu, int64_t slot, const struct history_sample *sample);
bool history_put_minute(struct history_gpu *gpu, int64_t slot, const struct history_point *point);

/* Removes GPUs last seen before this minute. */
void history_forget(struct gpu_history *history, int64_t minute);

/* Abandons it; NULL is allowed. */
void history_save_free(struct history_save *save);

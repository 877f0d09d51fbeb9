/* SPDX-License-Identifier: MIT */
/*
 * What GPUs did: a value for each second of the last ten minutes, means and maxima for each minute of the
 * last week. It is in the controller because that hears of all nodes, and because the agent runs as root and
 * is to do little. GPUs are known by UUID, so that history follows a card whose number changes.
 *
 * A GPU takes 600 * 8 + 10080 * 16 = 166080 bytes (HISTORY_GPU_BYTES) and there are at most HISTORY_GPUS_MAX
 * of them: 162 MiB, and 1.3 MiB on a box with 8 GPUs. One that nobody has seen for a week is forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

#define HISTORY_SECONDS  600U
#define HISTORY_MINUTES  10080U
#define HISTORY_GPUS_MAX 1024U
#define HISTORY_MINUTE_S 60

enum history_value {
    HISTORY_BUSY,    // percent
    HISTORY_MEMORY,  // thousandths of what it has
    HISTORY_POWER,   // watts
    HISTORY_CELSIUS, // degrees
    HISTORY_VALUES,
};

#define HISTORY_NOT_KNOWN UINT16_MAX

/* One value of each kind, or HISTORY_NOT_KNOWN: missing is not zero. */
struct history_sample {
    uint16_t values[HISTORY_VALUES];
};

struct history_point {
    struct history_sample mean, max;
};

#define HISTORY_GPU_BYTES                                                                                    \
    (HISTORY_SECONDS * sizeof(struct history_sample) + HISTORY_MINUTES * sizeof(struct history_point))

struct gpu_history;

struct gpu_history *gpu_history_new(void);
void gpu_history_free(struct gpu_history *history);

/* What a node said last: `gpus` is a list of struct gpu_state. About once a second. */
void gpu_history_add(struct gpu_history *history, int64_t wall_ms, const struct record_list *gpus);

/*
 * Point i is about the `step_s` seconds from `from_s` + i * `step_s` on (since 1970). Steps below a minute
 * are made of seconds, which reach back ten minutes; others are whole minutes, and so must `from_s` be. All
 * is unknown of a GPU that nobody saw.
 */
void gpu_history_read(const struct gpu_history *history, const char *uuid, int64_t from_s, uint32_t step_s,
    struct history_point *points, size_t count);

/* GPUs that something is known of, and what the history takes in memory. */
size_t gpu_history_count(const struct gpu_history *history);
size_t gpu_history_bytes(const struct gpu_history *history);

/* --- gpu_history_file.c: over a restart --- */

/*
 * The whole history is written once an hour and at the end; what is newer than that once a minute, so that
 * a crash loses a minute and little is written. Both files lie in `dirfd` and replace the ones before at
 * once. Negative errno.
 */
int gpu_history_save(struct gpu_history *history, int dirfd, bool is_whole);

/* Adds what is in the files. One that is torn, foreign or of another version says nothing: -EBADMSG with its
 * name in the sentence, after the other has been read. */
int gpu_history_load(struct gpu_history *history, int dirfd, struct error *err);

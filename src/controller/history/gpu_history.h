/* SPDX-License-Identifier: MIT */
/*
 * History of GPUs: a sample for each second of the last ten minutes, means and maxima for each minute of the
 * last week. It is part of the controller, which receives reports of all nodes, and not of the agent, which
 * runs as root and should do little. GPUs are identified by UUID, so the history follows a card whose index
 * changes.
 *
 * A GPU takes 600 * 8 + 10080 * 16 = 166080 bytes (HISTORY_GPU_BYTES) and there are at most HISTORY_GPUS_MAX:
 * 162 MiB, and 1.3 MiB on a machine with 8 GPUs. GPUs not seen for a week are removed.
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
    HISTORY_MEMORY,  // thousandths of its total
    HISTORY_POWER,   // watts
    HISTORY_CELSIUS, // degrees
    HISTORY_VALUES,
};

#define HISTORY_NOT_KNOWN UINT16_MAX

/* A value of each kind, or HISTORY_NOT_KNOWN: missing is not zero. */
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

/* Adds a node's report: `gpus` is a list of struct gpu_state. About once a second. */
void gpu_history_add(struct gpu_history *history, int64_t wall_ms, const struct record_list *gpus);

/*
 * Point i covers the `step_s` seconds from `from_s` + i * `step_s` on (since 1970). Steps below a minute use
 * the samples of the last ten minutes; others must be whole minutes, as must `from_s`. All values are unknown
 * for a GPU without history.
 */
void gpu_history_read(const struct gpu_history *history, const char *uuid, int64_t from_s, uint32_t step_s,
    struct history_point *points, size_t count);

/* The number of GPUs in the history, and its memory in bytes. */
size_t gpu_history_count(const struct gpu_history *history);
size_t gpu_history_bytes(const struct gpu_history *history);

/* --- gpu_history_file.c: storage --- */

/*
 * The whole history is written once an hour and at the end, newer data once a minute, so a crash loses at
 * most a minute and little is written. Both files are in `dirfd` and are replaced atomically. Negative errno.
 */
int gpu_history_save(struct gpu_history *history, int dirfd, bool is_whole);

/* Adds the contents of the files. A file that is truncated, foreign or of another version is ignored:
 * -EBADMSG with its name, after the other has been read. */
int gpu_history_load(struct gpu_history *history, int dirfd, struct error *err);

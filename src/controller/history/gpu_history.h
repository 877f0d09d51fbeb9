/* SPDX-License-Identifier: MIT */
/*
 * History of GPUs: samples of the last ten minutes, and means and maxima of the last week. It is part of the
 * controller, which receives reports of all nodes, and not of the agent, which runs as root and should do
 * little. GPUs are identified by UUID, so the history follows a card whose index changes.
 *
 * Together they take at most HISTORY_BYTES_MAX. With few GPUs there is a sample for each second and a mean
 * for each minute; the more GPUs, the coarser the steps (history_level). GPUs not seen for a week are
 * removed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/record.h"

#define HISTORY_SECONDS   600U
#define HISTORY_MINUTES   10080U
#define HISTORY_BYTES_MAX ((size_t)64 << 20)
#define HISTORY_MINUTE_S  60

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

/* Steps of a GPU's history. */
struct history_level {
    uint32_t second_s; // between samples of the last ten minutes
    uint32_t minute_m; // minutes of a mean of the last week
};

#define HISTORY_LEVELS 6U
extern const struct history_level history_levels[HISTORY_LEVELS];

struct gpu_history;

struct gpu_history *gpu_history_new(void);
void gpu_history_free(struct gpu_history *history);

/* Adds a node's report: `gpus` is a list of struct gpu_state. About once a second. */
void gpu_history_add(struct gpu_history *history, int64_t wall_ms, const struct record_list *gpus);

/*
 * Point i covers the `step_s` seconds from `from_s` + i * `step_s` on (since 1970). Steps below a minute use
 * the samples of the last ten minutes; others must be whole minutes, as must `from_s`. Where the history is
 * coarser, consecutive points are equal. All values are unknown for a GPU without history.
 */
void gpu_history_read(const struct gpu_history *history, const char *uuid, int64_t from_s, uint32_t step_s,
    struct history_point *points, size_t count);

/* For tests: the number of GPUs in the history, its memory in bytes, and the level that new GPUs get. */
size_t gpu_history_count(const struct gpu_history *history);
size_t gpu_history_bytes(const struct gpu_history *history);
unsigned gpu_history_level(const struct gpu_history *history);

/* --- gpu_history_file.c: storage --- */

/*
 * The whole history is written once an hour and at the end, newer data once a minute, so a crash loses at
 * most a minute and little is written. Both files are in `dirfd` and are replaced atomically. Negative errno.
 */
int gpu_history_save(struct gpu_history *history, int dirfd, bool is_whole);

/* The same in parts, as the whole history is tens of megabytes: begin, and step until the result is not 1.
 * One at a time; gpu_history_free() and gpu_history_save() abandon it. */
int gpu_history_save_begin(struct gpu_history *history, int dirfd, bool is_whole);
int gpu_history_save_step(struct gpu_history *history);

/* Adds the contents of the files. A file that is truncated, foreign or of another version is ignored:
 * -EBADMSG with its name, after the other has been read. */
int gpu_history_load(struct gpu_history *history, int dirfd, struct error *err);

/* SPDX-License-Identifier: MIT */
/*
 * The output of a terminal so far. The newest part is kept in memory, and all of it is in the log, so a
 * viewer may lag behind without costing memory or slowing down the job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HISTORY_SIZE (256U << 10) // bytes in memory

struct history {
    uint64_t end;     // bytes received so far
    int log_fd;       // receives all output
    int read_fd;      // the same file for reading, or -1
    off_t log_start;  // offset of the first byte in it
    bool is_log_torn; // a write failed: from there on, positions in the log differ
    uint8_t bytes[HISTORY_SIZE];
};

/* Begins at the current end of the log. To be called as the user, because reading the log requires its
 * owner's permissions. */
void history_open(struct history *history, int log_fd);

/* The buffer for the next bytes, at most *ret_room; they are then added to the history and the log. */
uint8_t *history_room(struct history *history, size_t *ret_room);
void history_take(struct history *history, size_t length);

/*
 * Copies bytes from `position` on. 0: there are none yet. -ENODATA: they are no longer kept; continue at
 * history_oldest().
 */
ssize_t history_read(const struct history *history, uint64_t position, uint8_t *bytes, size_t size);

/* The oldest position still in memory. */
uint64_t history_oldest(const struct history *history);

/* The beginning of a line within the last screenful. */
uint64_t history_last_screen(const struct history *history);

/* SPDX-License-Identifier: MIT */
/*
 * What a terminal has shown so far. The newest part is kept in memory, all of it is in the log: so a viewer
 * may lag as far behind as it likes without costing memory, and without slowing the job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HISTORY_SIZE (256U << 10) // bytes in memory

struct history {
    uint64_t end;     // bytes that came so far
    int log_fd;       // takes all of it
    int read_fd;      // the same file for reading, or -1
    off_t log_start;  // where the first byte lies in it
    bool is_log_torn; // a byte could not be written: the log has other positions from there on
    uint8_t bytes[HISTORY_SIZE];
};

/* Begins at the present end of the log. Reads of the log need the rights of its owner, so that this is called
 * as the user. */
void history_open(struct history *history, int log_fd);

/* Where the next bytes go, at most *ret_room of them; then they are taken in and written to the log. */
uint8_t *history_room(struct history *history, size_t *ret_room);
void history_take(struct history *history, size_t length);

/*
 * Copies what came at `position` and after it. 0: nothing has come there yet. -ENODATA: it is not kept any
 * more; history_oldest() is.
 */
ssize_t history_read(const struct history *history, uint64_t position, uint8_t *bytes, size_t size);

/* The oldest position that is still in memory. */
uint64_t history_oldest(const struct history *history);

/* The start of a line within the last screenful. */
uint64_t history_last_screen(const struct history *history);

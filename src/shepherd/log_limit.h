/* SPDX-License-Identifier: MIT */
/* Keeps output within --log-max: of a file that has grown beyond it, the beginning and the end are kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOG_LIMIT_LOOK_MS                                                                                    \
    250 // interval between checks: the file may exceed its limit by the bytes written meanwhile

struct log_limit {
    int fd;            // the job's open file, appended to by all its processes; borrowed
    uint64_t max;      // bytes; 0: no limit
    off_t head;        // what is kept of the beginning; 0: nothing was cut so far
    uint64_t left_out; // bytes of output that were not kept
    size_t note;       // length of the line that says so
    char *tail;        // space for the end that is kept, allocated for the life of the process
    size_t tail_size;
};

/* `max` is the job's log_max. Only regular files are limited. Nothing is allocated later. */
void log_limit_open(struct log_limit *limit, int fd, uint64_t max);

/* Cuts the file if it exceeds its limit. Called as the file's owner. */
void log_limit_keep(struct log_limit *limit);

/* SPDX-License-Identifier: MIT */
/* Output that stays within --log-max: of a file that has grown over it, the beginning and the end are kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LOG_LIMIT_LOOK_MS                                                                                    \
    250 // how often the file is looked at: it may be larger by what was written meanwhile

struct log_limit {
    int fd;            // the job's open file, appended to by all its processes; borrowed
    uint64_t max;      // bytes; 0: no limit
    off_t head;        // what is kept of the beginning; 0: nothing was cut so far
    uint64_t left_out; // bytes of the job that are not kept
    size_t note;       // length of the line that says so
    char *tail;        // room for the end that is kept; for as long as the process lives
    size_t tail_size;
};

/* `max` is the job's log_max. What is not a regular file is not limited. Nothing is allocated later. */
void log_limit_open(struct log_limit *limit, int fd, uint64_t max);

/* Cuts the file if it is over its limit. As the file's user. */
void log_limit_keep(struct log_limit *limit);

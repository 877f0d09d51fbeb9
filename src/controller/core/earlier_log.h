/* SPDX-License-Identifier: MIT */
/* concerns/earlier_log.c: where the output of an attempt that was requeued is. */
#pragma once

#include <stdint.h>

struct core;

struct earlier_log {
    uint32_t attempt; // 0: none
    char *path, *node;
};

/* Of this attempt, if it is the latest one that was requeued while this mgpud was running; else NULL. */
const struct earlier_log *core_earlier_log(const struct core *core, uint64_t job, uint32_t attempt);

/* SPDX-License-Identifier: MIT */
/* Commands that fail because the memory of their GPU is used up, and the request of the next try. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"
#include "job/usage.h"

/*
 * The last line of `tail` with which a framework or the driver reports that GPU memory is used up, escaped;
 * NULL: there is none. The caller frees it.
 */
char *gpu_oom_line(const char *tail);

/* "x1.5", "1.5,max=80G": by how much the next try asks for more, and at most for how much. */
struct gpu_oom_retry {
    uint32_t percent;   // 150
    uint64_t max_bytes; // of one GPU; 0: no bound but the GPU itself
};

/* -EINVAL, -ERANGE: outside 1.1 to 10. */
int gpu_oom_parse_retry(const char *text, struct gpu_oom_retry *ret, struct error *err);

/*
 * The request of the next try: a share grows by ask->retry_oom from what was asked or used, whichever is
 * more, and becomes the whole GPU when it would have all of its memory. `usage` may be NULL. False when the
 * job did not ask for that, or has no more to ask for: it had whole GPUs, several nodes, or its bound. `size`
 * is the memory of the GPU that it had, 0 if not known: a job that ends before the first sample has no usage.
 * *ret is initialised only when true.
 */
bool gpu_oom_enlarge(
    const struct job_ask *ask, const struct job_usage *usage, uint64_t size, struct job_ask *ret);

/* The same with the whole GPU, where nothing has so large a share; false: its bound forbids it. */
bool gpu_oom_take_whole(struct job_ask *ask);

/* SPDX-License-Identifier: MIT */
/* Commands that run out of GPU memory, and the request of the next try. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "job/ask.h"
#include "job/usage.h"

/*
 * The last line of `tail` in which a framework or the driver reports that it ran out of GPU memory, escaped;
 * NULL: there is none. The caller frees it.
 */
char *gpu_oom_line(const char *tail);

/* "x1.5", "1.5,max=80G": the factor by which the next try requests more, and the maximum. */
struct gpu_oom_retry {
    uint32_t percent;   // 150
    uint64_t max_bytes; // of one GPU; 0: no bound but the GPU itself
};

/* -EINVAL, -ERANGE: outside 1.1 to 10. */
int gpu_oom_parse_retry(const char *text, struct gpu_oom_retry *ret, struct error *err);

/*
 * The request of the next try: a share grows by ask->retry_oom from the larger of the requested and the used
 * size, and becomes the whole GPU when it would have all of its memory. `usage` may be NULL. False if the job
 * did not request that, or cannot request more: it had whole GPUs, several nodes, or its maximum. `size` is
 * the memory of the GPU that it had, 0 if not known: a job that ends before the first sample has no usage.
 * *ret is initialised only when true.
 */
bool gpu_oom_enlarge(
    const struct job_ask *ask, const struct job_usage *usage, uint64_t size, struct job_ask *ret);

/* The same with the whole GPU, if no GPU can offer such a large share; false: its maximum forbids it. */
bool gpu_oom_take_whole(struct job_ask *ask);

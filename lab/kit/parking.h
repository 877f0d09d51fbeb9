/* SPDX-License-Identifier: MIT */
/* Jobs that hold memory of the GPU of the checks, and are parked and brought back. */
#pragma once

#include "lab/kit/kit.h"

#define PARKING_MS     20000       // for memory of about a GiB
#define PARKING_READY  "\"ready\"" // in the output of a program that holds its memory
#define PARKING_END_MS 30000

/* Options of submit for that GPU, ending in NULL. */
extern const char *const parking_gpu[];

/* Submits mgpu-gpu-test with these arguments and waits until `programs` of its processes hold their memory;
 * the job's number, or -1 after result_fail(). */
int64_t parking_start(struct kit *kit, const char *const *options, const char *const *arguments,
    size_t programs, int64_t most_ms, struct result *result);

/* Parks the job. False after result_skip(), with the reason for which it was not parked, or result_fail(). */
bool parking_park(struct kit *kit, int64_t job, int64_t most_ms, struct result *result);

/* Brings it back. False after result_fail(). */
bool parking_return(struct kit *kit, int64_t job, int64_t most_ms, struct result *result);

/* Both. */
bool parking_cycle(struct kit *kit, int64_t job, int64_t most_ms, struct result *result);

/* Lets a job that holds its memory until it is continued compare it and end; it may have been already. */
void parking_let_go(struct kit *kit, int64_t job);

/* Waits until `park` of the job is `state` ("": it is not parked), it is known why the job was not parked, or
 * the job has ended. Its record, whatever it is then; the caller frees it. NULL: it cannot be shown. */
json_t *parking_await(struct kit *kit, int64_t job, const char *state, int64_t most_ms);

/* Parks a job that the driver may refuse to park, brings it back, and judges its end: `right` says what was
 * right, as in "its memory was correct". What came of the parking is the fact "attempt". */
void parking_try(struct kit *kit, int64_t job, const char *right, struct result *result);

/* The end of a job whose memory must be right; `done` is what result_pass() says. */
void parking_judge(struct kit *kit, int64_t job, const char *done, struct result *result);

/* SPDX-License-Identifier: MIT */
/*
 * The process that parks one attempt, and restores it. Only this process calls CUDA's driver, which may hang;
 * it is never killed, because a call of the driver that is cut off leaves the job in a state that nobody can
 * repair. It survives the agent, and whoever asks again finds its result in the spool.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct park_task {
    const char *library; // NULL: libcuda.so.1
    uint32_t number;
    uint32_t is_return;
    const struct record_list *gpus; // of the node, struct gpu_state: a restore on others names them all
    uint64_t bytes;                 // that it uses on its GPUs
    uint64_t bytes_max;
    int64_t timeout_ms; // 0: unlimited
};

/* The helper's exit statuses: another helper works on this attempt. */
#define PARK_EXIT_BUSY 75

/* Carries out the task for the attempt in `dirfd` and returns an exit status. The result is in the spool. */
int park_helper_run(const struct park_task *task, int dirfd);

/* SPDX-License-Identifier: MIT */
/* For tests: the agent's view of helper processes that run the NVML backend on the stand-in library. */
#pragma once

#include <sys/types.h>

#include "agent/gpu/helper.h"
#include "unit_test.h"

#define THREE_GPUS                                                                                           \
    "gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\n"                                                         \
    "gpu 0 2b 24576 2 2 40 90000 GPU-b NVIDIA One\n"                                                         \
    "gpu 0 3b 24576 3 3 40 90000 GPU-c NVIDIA One\n"

struct watcher {
    struct event_base *base;
    struct gpu_roster *roster;
    struct gpu_helper *helper;
    int reports;
    const char *awaited; // as describe() makes it
    char seen[64];       // "a-b" and the like
    char text[512];
    uint32_t used_mib[8];
    uint64_t gpu_answers[8];                // looks that each has answered
    int losses;                             // reports with a GPU that is lost
    const struct gpu_helper_timing *timing; // NULL: watcher_timing
};

extern const struct gpu_helper_timing watcher_timing;

/* Makes the stand-in such a machine, at once. */
void machine_is(const char *text);

/* Starts the first helper on that machine. */
void begin(struct watcher *watcher, const char *machine);

/* Runs the loop until a report shows the GPUs so; fails after a while. */
void await(struct watcher *watcher, const char *what);

/* Runs the loop until a look is answered. */
void await_answer(struct watcher *watcher, uint64_t number, const char *what);

/* Runs the loop for that long, whatever happens. */
void await_time(struct watcher *watcher, int64_t ms);

/* Ends the helpers and waits for their processes. */
void end(struct watcher *watcher);

/* The processes that this one has started: 0 when the kernel does not list them. */
pid_t first_child(void);
int count_children(void);
void kill_children(void);

#define CASE(name) TEST_WITH(name, NULL, watcher_leave)

/* A test that failed has left its helper, for which the end of the next one would wait for ever. */
int watcher_leave(void **state);

/* The state file of the stand-in, for all tests together. */
int watcher_set_up(void **state);
int watcher_tear_down(void **state);

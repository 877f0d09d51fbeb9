/* SPDX-License-Identifier: MIT */
/*
 * A page shared by the agent and a GPU helper process: it shows which GPU the helper is working on, so that
 * its silence can be attributed to one GPU, and which GPUs it excludes. A GPU's key is its PCI address, or
 * "#N", the driver's own number, before the address is known.
 *
 * A GPU excluded because it hangs may be opened to identify it. A released GPU is not opened at all; if there
 * is one, the others are opened by their addresses.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_KEY_SIZE 32U
#define GPU_LEFT_OUT 64U // GPUs; with more hanging ones, no GPU of the node can be used
#define GPU_KNOWN    256U

struct gpu_known {
    char key[GPU_KEY_SIZE];
    bool is_released;
};

struct gpu_progress {
    _Atomic uint64_t steps;    // incremented whenever the helper begins or ends an operation
    _Atomic int64_t passed_ms; // time that the helper could have used, counted by the agent
    _Atomic uint32_t is_open;  // 1: the driver has started
    _Atomic uint32_t
        is_prompt;          // 1: the operation is no start of the driver or of a GPU, which may take a minute
    char key[GPU_KEY_SIZE]; // the GPU it is working on; "": none
    uint32_t n_left_out;    // this and the next are set before the helper is forked
    char left_out[GPU_LEFT_OUT][GPU_KEY_SIZE];
    uint32_t n_known; // 0: none is released, and all GPUs listed by the driver are opened
    struct gpu_known known[GPU_KNOWN];
    _Atomic uint64_t
        wanted[GPU_KNOWN]; // by position in the helper's reports: number of the latest check requested
};

/* Shared with processes forked later. NULL if memory is exhausted. */
struct gpu_progress *gpu_progress_new(void);
void gpu_progress_free(struct gpu_progress *page);

/* False if the list is full. */
bool gpu_progress_leave_out(struct gpu_progress *page, const char *key);

/* Adds a known GPU; to be called for all known GPUs or none. False as above. */
bool gpu_progress_know(struct gpu_progress *page, const char *key, bool is_released);

/* True if a helper with this page may open that GPU. */
bool gpu_progress_may_open(const struct gpu_progress *page, const char *key);

/* Requests check number `number` of the GPU at that position; the helper must then be woken up. */
void gpu_progress_want(struct gpu_progress *page, size_t position, uint64_t number);

/* In the helper: the number of the latest check requested for that GPU. */
uint64_t gpu_progress_wanted(const struct gpu_progress *page, size_t position);

/* Adds time that the helper could have used. */
void gpu_progress_pass(struct gpu_progress *page, int64_t ms);

/* In the helper: the total of that time. */
int64_t gpu_progress_time_ms(const struct gpu_progress *page);

/* In the helper. With a NULL page nothing is excluded. */
bool gpu_progress_is_left_out(const struct gpu_progress *page, const char *key);

/* An operation begins; `key` NULL: not for a particular GPU. The second: it may start a GPU, or the driver,
 * which takes longer than any other call. A new page is at such an operation. */
void gpu_progress_enter(struct gpu_progress *page, const char *key);
void gpu_progress_enter_start(struct gpu_progress *page, const char *key);

/* An operation has ended: the driver responds. Any thread may call this. */
void gpu_progress_step(struct gpu_progress *page);

/* The helper waits for that GPU: if the page shows no further step, the GPU is the reason. */
void gpu_progress_hang(struct gpu_progress *page, const char *key);

/* The driver has started and its GPUs have been listed. */
void gpu_progress_set_open(struct gpu_progress *page);

/* SPDX-License-Identifier: MIT */
/*
 * A page that the agent shares with a GPU helper process: at which GPU the helper is, so that its silence can
 * be put down to one GPU, and which GPUs it leaves out. A GPU's key is its PCI address, or "#N", the driver's
 * own number, before the address is known.
 *
 * A GPU that is left out because it hangs may be opened to learn which one it is. One that is released is not
 * opened at all: so where there is one, the others are opened by their addresses.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_KEY_SIZE 32U
#define GPU_LEFT_OUT 64U // GPUs; a node with more of them that hang has none that can be used
#define GPU_KNOWN    256U

struct gpu_known {
    char key[GPU_KEY_SIZE];
    bool is_released;
};

struct gpu_progress {
    _Atomic uint64_t steps;   // grows with everything the helper begins or ends
    _Atomic uint32_t is_open; // 1: the driver has started
    char key[GPU_KEY_SIZE];   // the GPU it is at; "": none
    uint32_t n_left_out;      // this and the next are written before the helper is forked
    char left_out[GPU_LEFT_OUT][GPU_KEY_SIZE];
    uint32_t n_known; // 0: none is released, and whatever the driver lists is opened
    struct gpu_known known[GPU_KNOWN];
    _Atomic uint64_t wanted[GPU_KNOWN]; // by position in the helper's reports: the latest look at that GPU
};

/* Shared with processes forked later. NULL without memory for it. */
struct gpu_progress *gpu_progress_new(void);
void gpu_progress_free(struct gpu_progress *page);

/* False when no more fit. */
bool gpu_progress_leave_out(struct gpu_progress *page, const char *key);

/* One of all GPUs that are known; said of each or of none. False as above. */
bool gpu_progress_know(struct gpu_progress *page, const char *key, bool is_released);

/* May a helper with this page have that GPU open? */
bool gpu_progress_may_open(const struct gpu_progress *page, const char *key);

/* The `number`th look is one at the GPU in that position; the helper has to be woken then. */
void gpu_progress_want(struct gpu_progress *page, size_t position, uint64_t number);

/* In the helper: the latest look at that GPU that was asked for. */
uint64_t gpu_progress_wanted(const struct gpu_progress *page, size_t position);

/* In the helper. A NULL page leaves nothing out and is told nothing. */
bool gpu_progress_is_left_out(const struct gpu_progress *page, const char *key);

/* Something begins; `key` NULL: it is about no GPU. */
void gpu_progress_enter(struct gpu_progress *page, const char *key);

/* Something has ended: the driver answers. Any thread may say so. */
void gpu_progress_step(struct gpu_progress *page);

/* It waits for that GPU; when nothing is stepped on, the GPU is why. */
void gpu_progress_hang(struct gpu_progress *page, const char *key);

/* The driver has started and has named its GPUs. */
void gpu_progress_set_open(struct gpu_progress *page);

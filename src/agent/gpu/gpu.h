/* SPDX-License-Identifier: MIT */
/*
 * A kind of GPUs: how to find, describe and measure them. Backends run only in the GPU helper process,
 * because the calls of a sick driver may never return. A new backend is one file with this struct and a row
 * in gpu/probe.c.
 */
#pragma once

#include <stddef.h>

#include "agent/gpu/progress_page.h"
#include "base/error.h"
#include "wire/gpu_spec.h"
#include "wire/message.h"

struct gpu_backend {
    const char *name; // as in HELLO

    /* Finds the GPUs but those that `page` leaves out, and tells it at which it is. -ENODEV: this machine
     * has no such driver, which `err` says in a sentence with a hint. */
    int (*open)(const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err);

    /* How many there are; constant while open. */
    size_t (*count)(const void *state);

    /* The key of a GPU for struct gpu_progress; asks nothing of the driver. */
    const char *(*key)(const void *state, size_t i);

    /* Fills what never changes: index in PCI order, uuid, model, pci, memory_bytes, vendor, and the minors or
     * -1. The strings are the caller's. No uuid: the driver does not know it. */
    void (*describe)(void *state, size_t i, struct gpu_state *gpu);

    /* Fills what is measured, a bit in `valid` for each value that could be read, is_lost with `trouble`, and
     * the xid fields. The state is the one of the sample before, or fresh from `describe`; a list of
     * processes that it holds is replaced.
     */
    void (*sample)(void *state, size_t i, struct gpu_state *gpu);

    /* Refreshes no more than what tells whether the GPU is clean: memory, processes, xid fields, is_lost.
     * NULL: `sample` is quick enough. */
    void (*look)(void *state, size_t i, struct gpu_state *gpu);

    /* What of it cannot be used although its GPUs can, added to what is said of them; NULL or "": nothing.
     * May change; asked for before each full report. */
    void (*remark)(void *state, char *text, size_t size);

    /* Lets go of everything; NULL is fine. */
    void (*close)(void *state);
};

extern const struct gpu_backend gpu_nvml;
extern const struct gpu_backend gpu_amd;
extern const struct gpu_backend gpu_sim;
extern const struct gpu_backend gpu_none;

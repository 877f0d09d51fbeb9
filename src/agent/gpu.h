/* SPDX-License-Identifier: MIT */
/*
 * A kind of GPUs: how to find, describe and measure them. Backends run only in the GPU helper process,
 * because the calls of a sick driver may never return. A new backend is one file with this struct and a row
 * in gpu_helper.c.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "wire/gpu_spec.h"
#include "wire/message.h"

struct gpu_backend {
    const char *name; // as in HELLO

    /* Finds the GPUs. -ENODEV: this machine has no such driver, which `err` says in a sentence with a hint.
     */
    int (*open)(const struct gpu_spec *spec, void **ret_state, struct error *err);

    /* How many there are; constant while open. */
    size_t (*count)(const void *state);

    /* Fills what never changes: index in PCI order, uuid, model, pci, memory_bytes, vendor, and the minors or
     * -1. The strings are the caller's. */
    void (*describe)(void *state, size_t i, struct gpu_state *gpu);

    /* Fills what is measured, a bit in `valid` for each value that could be read, is_lost, and the xid
     * fields. The state is the one of the sample before, or fresh from `describe`; a list of processes that
     * it holds is replaced.
     */
    void (*sample)(void *state, size_t i, struct gpu_state *gpu);

    /* Refreshes no more than what tells whether the GPU is clean: memory, processes, xid fields, is_lost.
     * NULL: `sample` is quick enough. */
    void (*look)(void *state, size_t i, struct gpu_state *gpu);

    /* Lets go of everything; NULL is fine. */
    void (*close)(void *state);
};

extern const struct gpu_backend gpu_nvml;
extern const struct gpu_backend gpu_sim;
extern const struct gpu_backend gpu_none;

/* SPDX-License-Identifier: MIT */
/*
 * GPU backends: how to find, describe and measure one kind of GPU. Backends run only in the GPU helper
 * process, because calls of a faulty driver may never return. A new backend is one file with this struct,
 * named by the row of its vendor in base/gpu_vendor.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/gpu/progress_page.h"
#include "base/error.h"
#include "base/gpu_vendor.h"
#include "wire/gpu_spec.h"
#include "wire/message.h"

struct gpu_backend {
    const char *name; // as in HELLO

    /* Finds all GPUs except those excluded by `page`, and records its progress there. -ENODEV: this machine
     * has no such driver; `err` has a sentence and a hint. */
    int (*open)(const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err);

    /* The number of GPUs; constant while open. */
    size_t (*count)(const void *state);

    /* The key of a GPU for struct gpu_progress; makes no driver call. */
    const char *(*key)(const void *state, size_t i);

    /* Sets the constant fields: index in PCI order, uuid, model, pci, memory_bytes, vendor, and the minors or
     * -1. The caller owns the strings. No uuid: unknown to the driver. */
    void (*describe)(void *state, size_t i, struct gpu_state *gpu);

    /* Sets the measured fields, a bit in `valid` for each value that could be read, is_lost with `trouble`,
     * and the xid fields. The state is that of the previous sample, or new from `describe`; its list of
     * processes is replaced. */
    void (*sample)(void *state, size_t i, struct gpu_state *gpu);

    /* Updates only what shows whether the GPU is clean: memory, processes, xid fields, is_lost. NULL:
     * `sample` is fast enough. */
    void (*look)(void *state, size_t i, struct gpu_state *gpu);

    /* The driver's version; "" if it is not known. NULL: there is none. */
    void (*driver)(void *state, char *text, size_t size);

    /* A remark about unavailable values although the GPUs work; NULL or "": none. Queried before each full
     * report, because it may change. */
    void (*remark)(void *state, char *text, size_t size);

    /* True if there are other GPUs now than those that `open` found. May be called while GPUs are read. NULL:
     * they never change. */
    bool (*is_outdated)(const void *state);

    /* Releases everything; NULL is allowed. */
    void (*close)(void *state);
};

#define GPU_BACKEND(id, number, word, ...) extern const struct gpu_backend gpu_##word;
GPU_VENDORS(GPU_BACKEND)
extern const struct gpu_backend gpu_none;

/* SPDX-License-Identifier: MIT */
#include "agent/gpu/failing_gpus.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

struct failing_gpu *failing_gpus_find(const struct failing_gpus *failing_gpus, const char *key)
{
    for (size_t i = 0; i < failing_gpus->count; i++)
        if (strcmp(failing_gpus->items[i].key, key) == 0)
            return &failing_gpus->items[i];
    return NULL;
}

struct failing_gpu *failing_gpus_add(struct failing_gpus *failing_gpus, const char *key, bool is_hung)
{
    struct failing_gpu *failing_gpu = failing_gpus_find(failing_gpus, key);
    if (failing_gpu == NULL) {
        failing_gpus->items =
            xreallocarray(failing_gpus->items, failing_gpus->count + 1, sizeof(*failing_gpus->items));
        failing_gpu = &failing_gpus->items[failing_gpus->count++];
        *failing_gpu = (struct failing_gpu){ .pause_ms = failing_gpus->timing->retry_first_ms };
        (void)snprintf(failing_gpu->key, sizeof(failing_gpu->key), "%s", key);
        failing_gpu->due_ms = clock_boot_ms() + failing_gpu->pause_ms;
    }
    failing_gpu->is_hung = failing_gpu->is_hung || is_hung;
    return failing_gpu;
}

void failing_gpus_remove(struct failing_gpus *failing_gpus, const char *key)
{
    struct failing_gpu *failing_gpu = failing_gpus_find(failing_gpus, key);
    if (failing_gpu != NULL)
        *failing_gpu = failing_gpus->items[--failing_gpus->count];
}

int64_t failing_gpus_lengthen(const struct failing_gpus *failing_gpus, int64_t pause_ms)
{
    int64_t most_ms = failing_gpus->timing->retry_max_ms;
    return pause_ms * 2 > most_ms ? most_ms : pause_ms * 2;
}

void failing_gpus_back_off(const struct failing_gpus *failing_gpus, struct failing_gpu *failing_gpu)
{
    failing_gpu->pause_ms = failing_gpus_lengthen(failing_gpus, failing_gpu->pause_ms);
    failing_gpu->due_ms = clock_boot_ms() + failing_gpu->pause_ms;
}

bool failing_gpus_have_hung(const struct failing_gpus *failing_gpus)
{
    for (size_t i = 0; i < failing_gpus->count; i++)
        if (failing_gpus->items[i].is_hung)
            return true;
    return false;
}

struct failing_gpu *failing_gpus_next(const struct failing_gpus *failing_gpus)
{
    struct failing_gpu *next = NULL;
    for (size_t i = 0; i < failing_gpus->count; i++) {
        struct failing_gpu *failing_gpu = &failing_gpus->items[i];
        if (failing_gpu->stuck == NULL && (next == NULL || failing_gpu->due_ms < next->due_ms))
            next = failing_gpu;
    }
    return next;
}

void failing_gpus_free_stuck(const struct failing_gpus *failing_gpus, const struct gpu_child *child)
{
    for (size_t i = 0; i < failing_gpus->count; i++)
        if (failing_gpus->items[i].stuck == child)
            failing_gpus->items[i].stuck = NULL;
}

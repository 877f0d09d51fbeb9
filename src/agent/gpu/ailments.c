/* SPDX-License-Identifier: MIT */
#include "agent/gpu/ailments.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

struct gpu_ailment *gpu_ailments_find(const struct gpu_ailments *ailments, const char *key)
{
    for (size_t i = 0; i < ailments->count; i++)
        if (strcmp(ailments->items[i].key, key) == 0)
            return &ailments->items[i];
    return NULL;
}

struct gpu_ailment *gpu_ailments_note(struct gpu_ailments *ailments, const char *key, bool is_hung)
{
    struct gpu_ailment *ailment = gpu_ailments_find(ailments, key);
    if (ailment == NULL) {
        ailments->items = xreallocarray(ailments->items, ailments->count + 1, sizeof(*ailments->items));
        ailment = &ailments->items[ailments->count++];
        *ailment = (struct gpu_ailment){ .pause_ms = ailments->timing->retry_first_ms };
        (void)snprintf(ailment->key, sizeof(ailment->key), "%s", key);
        ailment->due_ms = clock_boot_ms() + ailment->pause_ms;
    }
    ailment->is_hung = ailment->is_hung || is_hung;
    return ailment;
}

void gpu_ailments_end(struct gpu_ailments *ailments, const char *key)
{
    struct gpu_ailment *ailment = gpu_ailments_find(ailments, key);
    if (ailment != NULL)
        *ailment = ailments->items[--ailments->count];
}

int64_t gpu_ailments_lengthen(const struct gpu_ailments *ailments, int64_t pause_ms)
{
    int64_t most_ms = ailments->timing->retry_max_ms;
    return pause_ms * 2 > most_ms ? most_ms : pause_ms * 2;
}

void gpu_ailments_put_off(const struct gpu_ailments *ailments, struct gpu_ailment *ailment)
{
    ailment->pause_ms = gpu_ailments_lengthen(ailments, ailment->pause_ms);
    ailment->due_ms = clock_boot_ms() + ailment->pause_ms;
}

bool gpu_ailments_have_hung(const struct gpu_ailments *ailments)
{
    for (size_t i = 0; i < ailments->count; i++)
        if (ailments->items[i].is_hung)
            return true;
    return false;
}

struct gpu_ailment *gpu_ailments_next(const struct gpu_ailments *ailments)
{
    struct gpu_ailment *next = NULL;
    for (size_t i = 0; i < ailments->count; i++) {
        struct gpu_ailment *ailment = &ailments->items[i];
        if (ailment->stuck == NULL && (next == NULL || ailment->due_ms < next->due_ms))
            next = ailment;
    }
    return next;
}

void gpu_ailments_free_stuck(const struct gpu_ailments *ailments, const struct gpu_child *child)
{
    for (size_t i = 0; i < ailments->count; i++)
        if (ailments->items[i].stuck == child)
            ailments->items[i].stuck = NULL;
}

/* SPDX-License-Identifier: MIT */
/* NVML reports which GPU an error occurred on, but not the process. On a shared GPU the responsible job is
 * therefore unknown, and the text says so. */
#include "agent/gpu/fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/event.h"

struct finding {
    const struct gpu_xid *xid; // NULL: none
    const struct gpu_state *gpu;
    bool is_shared;
};

static bool is_worse(const struct finding *found, const struct gpu_xid *xid)
{
    if (found->xid == NULL)
        return true;
    enum xid_class before = xid_class_of(found->xid->number), class = xid_class_of(xid->number);
    return class != before ? class > before : xid->boot_ms < found->xid->boot_ms;
}

static void search_gpu(
    struct finding *found, const struct gpu_grant *grant, const struct gpu_state *gpu, int64_t from_ms)
{
    const struct gpu_xid *xids = gpu->xids.items;
    for (size_t i = 0; i < gpu->xids.count; i++)
        if (xids[i].boot_ms >= from_ms && is_worse(found, &xids[i]))
            *found = (struct finding){ &xids[i], gpu, grant->slot != 0 };
}

static struct finding search(
    const struct record_list *grants, const struct record_list *gpus, int64_t from_ms)
{
    const struct gpu_grant *items = grants->items;
    const struct gpu_state *states = gpus->items;
    struct finding found = { 0 };
    for (size_t i = 0; i < grants->count; i++)
        for (size_t k = 0; k < gpus->count; k++)
            if (items[i].uuid != NULL && states[k].uuid != NULL && strcmp(items[i].uuid, states[k].uuid) == 0)
                search_gpu(&found, &items[i], &states[k], from_ms);
    return found;
}

void gpu_fault_note(struct job_usage *usage, const struct record_list *grants, const struct record_list *gpus,
    int64_t from_ms)
{
    struct finding found = search(grants, gpus, from_ms);
    if (found.xid == NULL || (usage->xid != 0 && xid_class_of(found.xid->number) <= xid_class_of(usage->xid)))
        return;
    usage->xid = found.xid->number;
    free(usage->fault);
    usage->fault = xasprintf("GPU %u%s: Xid %u: %s", found.gpu->index,
        found.is_shared ? ", which it shared with others" : "", usage->xid, xid_words(usage->xid));
}

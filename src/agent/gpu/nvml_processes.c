/* SPDX-License-Identifier: MIT */
/*
 * NVML has a list for each kind, whose elements have grown over time: pid and memory (16 bytes), then two
 * instance ids (24 bytes), and in early 535 drivers, under the same name _v3, another count (32 bytes). Some
 * forwarding libraries write 16 bytes under the name _v3. So the buffer is always sized for the largest and
 * filled with a pattern; how far the driver wrote reveals the size.
 */
#include "agent/gpu/nvml_processes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/report.h"
#include "base/memory.h"

#define INFO_SIZE_V1   16U
#define INFO_SIZE      24U
#define INFO_SIZE_WIDE 32U
#define INFO_PATTERN   0xa5
#define FIRST_ROOM     64U
#define ROOM_MAX       65536U // processes of one kind on one GPU; higher values of the driver are rejected
#define TRIES          4      // the list may grow between two calls

struct process_info { // the part that all versions begin with
    unsigned int pid;
    unsigned long long memory;
};

struct process_call {
    nvml_processes_fn *newer, *v1;
    enum gpu_process_kind kind;
};

static size_t info_size(const unsigned char *infos, size_t room, size_t count)
{
    size_t written = room * INFO_SIZE_WIDE;
    while (written > 0 && infos[written - 1] == INFO_PATTERN)
        written--;
    if (written <= count * INFO_SIZE_V1)
        return INFO_SIZE_V1;
    return written == count * INFO_SIZE_WIDE ? INFO_SIZE_WIDE : INFO_SIZE;
}

/* Returns NVML's code. The caller frees *ret_infos. */
static int read_list(nvml_processes_fn *call, nvml_device device, unsigned char **ret_infos,
    size_t *ret_count, size_t *ret_size)
{
    int code = NVML_INSUFFICIENT_SIZE;
    unsigned int room = FIRST_ROOM, count = 0;
    unsigned char *infos = NULL;
    for (int i = 0; i < TRIES && code == NVML_INSUFFICIENT_SIZE && room <= ROOM_MAX; i++) {
        free(infos);
        infos = xcalloc(room, INFO_SIZE_WIDE);
        memset(infos, INFO_PATTERN, (size_t)room * INFO_SIZE_WIDE);
        count = room;
        code = call(device, &count, infos);
        if (code == NVML_SUCCESS && count > room)
            code = NVML_INSUFFICIENT_SIZE;
        if (code == NVML_INSUFFICIENT_SIZE)
            room = count > room ? count + count / 4 : room * 2;
    }
    *ret_infos = infos;
    *ret_count = code == NVML_SUCCESS ? count : 0;
    *ret_size = *ret_count > 0 ? info_size(infos, room, count) : INFO_SIZE;
    return code;
}

static int compare_pid(const void *a, const void *b)
{
    const struct gpu_process *left = a, *right = b;
    return left->pid < right->pid ? -1 : left->pid > right->pid;
}

static void add_process(struct record_list *list, const struct process_info *info, enum gpu_process_kind kind)
{
    struct gpu_process *items = xreallocarray(list->items, list->count + 1, sizeof(*items));
    bool is_known = info->memory != NVML_MEMORY_NOT_AVAILABLE;
    items[list->count++] = (struct gpu_process){
        .pid = info->pid,
        .kind = (uint32_t)kind,
        .is_memory_known = is_known,
        .memory_bytes = is_known ? info->memory : 0,
    };
    list->items = items;
}

/* Adds the processes of one kind; returns NVML's code. */
static int read_kind(const struct process_call *call, nvml_device device, struct record_list *list)
{
    size_t count = 0, size = 0;
    _cleanup_free_ unsigned char *infos = NULL;
    nvml_processes_fn *function = call->newer != NULL ? call->newer : call->v1;
    if (function == NULL)
        return NVML_NOT_SUPPORTED;
    int code = read_list(function, device, &infos, &count, &size);
    if (call->newer == NULL)
        size = INFO_SIZE_V1;
    for (size_t i = 0; i < count; i++) {
        struct process_info info;
        memcpy(&info, infos + i * size, sizeof(info));
        if (info.pid != 0)
            add_process(list, &info, call->kind);
    }
    return code;
}

/* Keeps each pid once. The lists count the same memory, so the largest number is used and not the sum. */
static void merge(struct record_list *list)
{
    struct gpu_process *items = list->items;
    size_t n = 0;
    if (list->count > 1)
        qsort(items, list->count, sizeof(*items), compare_pid);
    for (size_t i = 0; i < list->count; i++) {
        if (n == 0 || items[n - 1].pid != items[i].pid) {
            items[n++] = items[i];
            continue;
        }
        struct gpu_process *known = &items[n - 1];
        known->kind |= items[i].kind;
        known->is_memory_known |= items[i].is_memory_known;
        if (items[i].memory_bytes > known->memory_bytes)
            known->memory_bytes = items[i].memory_bytes;
    }
    list->count = n;
}

void nvml_read_processes(const struct nvml_api *api, nvml_device device, struct gpu_state *gpu)
{
    const struct process_call calls[] = {
        { api->compute, api->compute_v1, GPU_PROCESS_COMPUTE },
        { api->graphics, api->graphics_v1, GPU_PROCESS_GRAPHICS },
        { api->mps, api->mps_v1, GPU_PROCESS_MPS },
    };
    gpu_processes_cut(&gpu->processes, 0);
    if (gpu->is_lost)
        return;
    int compute = read_kind(&calls[0], device, &gpu->processes);
    if (compute != NVML_SUCCESS)
        return;
    for (size_t i = 1; i < sizeof(calls) / sizeof(calls[0]); i++)
        (void)read_kind(&calls[i], device, &gpu->processes);
    merge(&gpu->processes);
    gpu_processes_sort(&gpu->processes);
    gpu_processes_cut(&gpu->processes, GPU_PROCESSES_MAX);
    gpu->valid |= GPU_PROCESSES;
}

/* SPDX-License-Identifier: MIT */
#include "agent/gpu/report.h"

#include <stdlib.h>

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct gpu_report, backend, 16),
    RECORD_FIELD(2, RECORD_U32, struct gpu_report, is_on, 0),
    RECORD_FIELD(3, RECORD_U32, struct gpu_report, is_final, 0),
    RECORD_FIELD(4, RECORD_STRING, struct gpu_report, text, 512),
    RECORD_FIELD(5, RECORD_STRING, struct gpu_report, fix, 512),
    RECORD_SUBLIST(6, struct gpu_report, gpus, NODE_GPUS_MAX, &gpu_state_record),
    RECORD_FIELD(61, RECORD_U32, struct gpu_report, is_sample, 0),
    RECORD_FIELD(464, RECORD_STRING, struct gpu_report, driver, NODE_DRIVER_MAX),
    RECORD_FIELD(440, RECORD_U32, struct gpu_report, is_outdated, 0),
};
const struct record_type gpu_report_record = RECORD_TYPE(60, "GPU report", struct gpu_report, fields);

static int compare_memory(const void *a, const void *b)
{
    const struct gpu_process *left = a, *right = b;
    if (left->memory_bytes != right->memory_bytes)
        return left->memory_bytes > right->memory_bytes ? -1 : 1;
    return left->pid < right->pid ? -1 : left->pid > right->pid;
}

void gpu_processes_sort(struct record_list *processes)
{
    if (processes->count > 1)
        qsort(processes->items, processes->count, sizeof(struct gpu_process), compare_memory);
}

void gpu_processes_cut(struct record_list *processes, size_t max)
{
    struct gpu_process *items = processes->items;
    while (processes->count > max)
        record_clear(&gpu_process_record, &items[--processes->count]);
    if (processes->count > 0)
        return;
    free(items);
    processes->items = NULL;
}

static size_t count_up_to(const struct record_list *gpus, size_t max)
{
    const struct gpu_state *items = gpus->items;
    size_t sum = 0;
    for (size_t i = 0; i < gpus->count; i++)
        sum += items[i].processes.count < max ? items[i].processes.count : max;
    return sum;
}

void gpu_processes_share(struct record_list *gpus)
{
    struct gpu_state *items = gpus->items;
    size_t max = GPU_PROCESSES_MAX;
    while (max > 0 && count_up_to(gpus, max) > NODE_PROCESSES_MAX)
        max--;
    for (size_t i = 0; i < gpus->count; i++)
        gpu_processes_cut(&items[i].processes, max);
}

void gpu_report_forget_answers(const struct record_list *gpus)
{
    struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++)
        states[i].answers = 0;
}

/* SPDX-License-Identifier: MIT */
/* The largest node must fit: 256 GPUs, each with more processes than are reported. */

#include <string.h>

#include "agent/gpu/report.h"
#include "base/memory.h"
#include "unit_test.h"

#define REPORT_MAX (5U << 18) // of gpu/helper.c

static char *text(size_t length)
{
    char *made = xcalloc(length + 1, 1);
    memset(made, 'x', length);
    return made;
}

static void fill_process(struct gpu_process *process, uint32_t pid)
{
    *process = (struct gpu_process){ pid, UINT64_MAX, 7, 1, UINT64_MAX, UINT32_MAX, UINT64_MAX, 1, text(256),
        text(64) };
}

static void fill_gpu(struct gpu_state *gpu, size_t n_processes)
{
    struct gpu_process *processes = xcalloc(n_processes + 1, sizeof(*processes));
    memset(gpu, 0xff, sizeof(*gpu)); // every number is there
    gpu->uuid = text(96);
    gpu->model = text(96);
    gpu->pci = text(32);
    gpu->trouble = text(256);
    gpu->parent = text(96);
    gpu->refusal = text(256);
    for (size_t i = 0; i < n_processes; i++)
        fill_process(&processes[i], (uint32_t)i + 1);
    gpu->processes = (struct record_list){ processes, n_processes };
    gpu->xids = (struct record_list){ xcalloc(GPU_XIDS_MAX, sizeof(struct gpu_xid)), GPU_XIDS_MAX };
    memset(gpu->xids.items, 0xff, GPU_XIDS_MAX * sizeof(struct gpu_xid));
    struct gpu_test *tests = xcalloc(GPU_TESTS_MAX, sizeof(*tests));
    memset(tests, 0xff, GPU_TESTS_MAX * sizeof(*tests));
    for (size_t i = 0; i < GPU_TESTS_MAX; i++)
        tests[i].error = text(128);
    gpu->tests = (struct record_list){ tests, GPU_TESTS_MAX };
}

static void fill_node(struct record_list *list, size_t n_gpus, size_t n_processes)
{
    struct gpu_state *gpus = xcalloc(n_gpus, sizeof(*gpus));
    for (size_t i = 0; i < n_gpus; i++)
        fill_gpu(&gpus[i], n_processes);
    *list = (struct record_list){ gpus, n_gpus };
}

static size_t encoded(const struct record_type *type, const void *object)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    return bytes.length;
}

TEST(the_largest_node_fits_into_a_report_and_a_message)
{
    struct gpu_report report = { 0 };
    fill_node(&report.gpus, NODE_GPUS_MAX, GPU_PROCESSES_MAX);
    assert_true(encoded(&gpu_report_record, &report) > REPORT_MAX); // as it is it does not
    gpu_processes_share(&report.gpus);
    const struct message_gpus message = { .gpus = report.gpus };
    assert_in_range(encoded(&gpu_report_record, &report), 1, REPORT_MAX);
    assert_in_range(encoded(&message_gpus_record, &message), 1, LINK_MESSAGE_MAX / 2); // room for the usages
    record_clear(&gpu_report_record, &report);
}

TEST(short_lists_are_left_alone)
{
    struct gpu_report report = { 0 };
    fill_node(&report.gpus, 20, 10);
    struct gpu_state *gpus = report.gpus.items;
    for (size_t i = 0; i < 10; i++) {
        record_clear(&gpu_state_record, &gpus[i]);
        fill_gpu(&gpus[i], GPU_PROCESSES_MAX);
    }
    gpu_processes_share(&report.gpus);
    assert_int_equal(gpus[19].processes.count, 10);
    assert_int_equal(gpus[0].processes.count, (NODE_PROCESSES_MAX - 100) / 10);
    gpu_processes_cut(&gpus[0].processes, 0);
    assert_null(gpus[0].processes.items);
    record_clear(&gpu_report_record, &report);
}

TEST(processes_are_sorted_by_memory_then_pid)
{
    struct gpu_process items[] = { { .pid = 3, .memory_bytes = 1 }, { .pid = 2, .memory_bytes = 9 },
        { .pid = 1, .memory_bytes = 1 } };
    struct record_list list = { items, 3 };
    gpu_processes_sort(&list);
    assert_int_equal(items[0].pid, 2);
    assert_int_equal(items[1].pid, 1);
    assert_int_equal(items[2].pid, 3);
}

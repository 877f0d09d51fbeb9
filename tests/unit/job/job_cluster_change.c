/* SPDX-License-Identifier: MIT */
/* Changes of the cluster: as bytes and back, and what each kind must have. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "job/event.h"
#include "unit_test.h"

#define TEXT(text) ((char *)(uintptr_t)(text))

TEST(an_event_carries_a_change_with_its_devices)
{
    struct cluster_device device = { .index = 3,
        .uuid = TEXT("GPU-3"),
        .model = TEXT("NVIDIA H200"),
        .memory_bytes = 141ULL << 30,
        .numa = -1,
        .pcie_switch = 2,
        .links = 5,
        .is_lost = true,
        .closed = DEVICE_UNCLEAN | DEVICE_CROWDED,
        .memory_external = 5ULL << 28 };
    struct cluster_change change = { .kind = CHANGE_NODE_UP,
        .node = TEXT("box"),
        .cpu_milli = 64000,
        .memory = 1ULL << 40,
        .devices = { .items = &device, .count = 1 } };
    const struct job_event event = { .type = EVENT_CLUSTER, .change = { .items = &change, .count = 1 } };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_(job_event_clear) struct job_event back;
    record_encode(&job_event_record, &event, &bytes);
    assert_int_equal(record_decode(&job_event_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_int_equal(back.change.count, 1);
    const struct cluster_change *read = back.change.items;
    assert_int_equal(cluster_change_validate(read, NULL), 0);
    assert_string_equal(read->node, "box");
    assert_int_equal(read->cpu_milli, 64000);
    const struct cluster_device *devices = read->devices.items;
    assert_string_equal(devices[0].model, "NVIDIA H200");
    assert_int_equal(devices[0].numa, -1);
    assert_int_equal(devices[0].links, 5);
    assert_true(devices[0].is_lost);
    assert_int_equal(devices[0].closed, DEVICE_UNCLEAN | DEVICE_CROWDED);
    assert_true(devices[0].memory_external == 5ULL << 28);
}

TEST(each_kind_has_a_name_and_what_it_needs)
{
    static const struct {
        struct cluster_change good;
        const char *name;
    } rows[CHANGE_KINDS] = {
        { { .kind = CHANGE_NODE_UP, .node = TEXT("n") }, "node_up" },
        { { .kind = CHANGE_NODE_DOWN, .node = TEXT("n") }, "node_down" },
        { { .kind = CHANGE_GPU_PAUSE, .node = TEXT("n"), .uuid = TEXT("G") }, "gpu_pause" },
        { { .kind = CHANGE_GPU_RESUME, .node = TEXT("n"), .uuid = TEXT("G") }, "gpu_resume" },
        { { .kind = CHANGE_NODE_DRAIN, .node = TEXT("n") }, "node_drain" },
        { { .kind = CHANGE_NODE_RESUME, .node = TEXT("n") }, "node_resume" },
        { { .kind = CHANGE_RESERVE, .reservation = 1, .from_ms = 1, .until_ms = 2 }, "reserve" },
        { { .kind = CHANGE_UNRESERVE, .reservation = 1 }, "unreserve" },
        { { .kind = CHANGE_SETTINGS, .text = TEXT("x=1") }, "settings" },
        { { .kind = CHANGE_GPU_POLICY, .node = TEXT("n"), .uuid = TEXT("G"), .text = TEXT("ignore") },
            "gpu_policy" },
        { { .kind = CHANGE_GPU_DRAIN, .node = TEXT("n"), .uuid = TEXT("G"), .text = TEXT("Xid 79") },
            "gpu_drain" },
        { { .kind = CHANGE_GPU_RETURN, .node = TEXT("n"), .uuid = TEXT("G") }, "gpu_return" },
        { { .kind = CHANGE_NODE_UNREACHABLE, .node = TEXT("n"), .from_ms = 1 }, "node_unreachable" },
        { { .kind = CHANGE_NODE_FENCE, .node = TEXT("n") }, "node_fence" },
        { { .kind = CHANGE_NODE_JOIN, .node = TEXT("n") }, "node_join" },
        { { .kind = CHANGE_NODE_BACK, .node = TEXT("n") }, "node_back" },
        { { .kind = CHANGE_NODE_FORGET, .node = TEXT("n") }, "node_forget" },
        { { .kind = CHANGE_NODE_BAR, .node = TEXT("n"), .uid = 1000, .until_ms = 1 }, "node_bar" },
        { { .kind = CHANGE_JOB_REFUSED, .job = 7, .text = TEXT("n,m") }, "job_refused" },
        { { .kind = CHANGE_NODE_PARKING, .node = TEXT("n"), .text = TEXT("passed") }, "node_parking" },
        { { .kind = CHANGE_PARK_BAR, .job = 7, .text = TEXT("too large") }, "park_bar" },
    };
    for (size_t i = 0; i < CHANGE_KINDS; i++) {
        const struct cluster_change empty = { .kind = rows[i].good.kind };
        struct error err = { 0 };
        assert_int_equal(rows[i].good.kind, i);
        assert_string_equal(change_kind_name((enum change_kind)i), rows[i].name);
        assert_int_equal(cluster_change_validate(&rows[i].good, NULL), 0);
        assert_int_equal(cluster_change_validate(&empty, &err), -EBADMSG);
        assert_non_null(strstr(err.message, rows[i].name));
    }
}

TEST(a_change_that_cannot_be_is_refused)
{
    const struct cluster_change unknown = { .kind = CHANGE_KINDS };
    const struct cluster_change no_gpu = { .kind = CHANGE_GPU_PAUSE, .node = TEXT("n") };
    const struct cluster_change backwards = {
        .kind = CHANGE_RESERVE, .reservation = 1, .from_ms = 2, .until_ms = 2
    };
    assert_int_equal(cluster_change_validate(&unknown, NULL), -EBADMSG);
    assert_int_equal(cluster_change_validate(&no_gpu, NULL), -EBADMSG);
    assert_int_equal(cluster_change_validate(&backwards, NULL), -EBADMSG);
    assert_string_equal(change_kind_name(CHANGE_KINDS), "invalid");
}

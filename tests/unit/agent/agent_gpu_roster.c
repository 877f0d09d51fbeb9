/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/roster.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

#define BOOT "11111111-1111-1111-1111-111111111111"

/* A GPU as a report has it. */
struct seen {
    const char *uuid, *pci;
    int32_t pcie_switch;
    uint64_t links;
    uint32_t xid_count, is_lost;
    uint64_t memory_bytes;
    const char *parent;
    uint32_t valid;
};

static void take(struct gpu_roster *roster, const char *backend, const struct seen *seen, size_t count)
{
    struct gpu_state *gpus = xcalloc(count + 1, sizeof(*gpus));
    for (size_t i = 0; i < count; i++)
        gpus[i] = (struct gpu_state){
            .index = (uint32_t)i,
            .uuid = xstrdup(seen[i].uuid),
            .pci = xstrdup(seen[i].pci),
            .model = xstrdup("A GPU"),
            .valid = GPU_UTILIZATION | seen[i].valid,
            .parent = xstrdup(seen[i].parent),
            .pcie_switch = seen[i].pcie_switch,
            .links = seen[i].links,
            .xid = seen[i].xid_count > 0 ? 79 : 0,
            .xid_count = seen[i].xid_count,
            .is_lost = seen[i].is_lost,
            .memory_bytes = seen[i].memory_bytes,
        };
    struct gpu_report report = { .backend = xstrdup(backend), .is_on = 1, .gpus = { gpus, count } };
    gpu_roster_take(roster, &report);
    record_clear(&gpu_report_record, &report);
}

#define TAKE(roster, ...)                                                                                    \
    do {                                                                                                     \
        const struct seen seen_now[] = { __VA_ARGS__ };                                                      \
        take(roster, "nvml", seen_now, sizeof(seen_now) / sizeof(seen_now[0]));                              \
    } while (0)

static const struct gpu_state *at(struct gpu_roster *roster, size_t i)
{
    const struct record_list *gpus = gpu_roster_gpus(roster);
    assert_true(i < gpus->count);
    const struct gpu_state *gpu = (const struct gpu_state *)gpus->items + i;
    assert_int_equal(gpu->index, i);
    return gpu;
}

static void assert_gpu(struct gpu_roster *roster, size_t i, const char *uuid, bool is_lost)
{
    assert_string_equal(at(roster, i)->uuid, uuid);
    assert_int_equal(at(roster, i)->is_lost, is_lost);
}

#define WHOLE(layout)                                                                                        \
    {                                                                                                        \
        .uuid = "GPU-a", .pci = "0", .valid = (layout)                                                       \
    }
#define PART(name)                                                                                           \
    {                                                                                                        \
        .uuid = (name), .pci = "0", .parent = "GPU-a"                                                        \
    }

/* That it is not listed is not enough: the driver may have failed to list the instances. */
TEST(an_instance_has_gone_when_the_layout_is_known_without_it)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, WHOLE(GPU_LAYOUT), PART("MIG-a"), PART("MIG-b"));
    TAKE(roster, WHOLE(0));
    assert_gpu(roster, 1, "MIG-a", true);
    assert_int_equal(at(roster, 1)->is_gone, 0);
    TAKE(roster, WHOLE(GPU_LAYOUT), PART("MIG-b"), PART("MIG-c"));
    assert_int_equal(at(roster, 1)->is_gone, 1);
    assert_string_equal(at(roster, 1)->trouble, "this MIG instance does not exist any more");
    assert_gpu(roster, 2, "MIG-b", false);
    assert_gpu(roster, 3, "MIG-c", false);
    TAKE(roster, WHOLE(GPU_LAYOUT), PART("MIG-a"));
    assert_gpu(roster, 1, "MIG-a", false);
    assert_int_equal(at(roster, 1)->is_gone, 0);
    gpu_roster_free(roster);
}

TEST(instances_hang_and_are_released_with_their_gpu)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    struct gpu_progress *page = gpu_progress_new();
    TAKE(roster, WHOLE(GPU_LAYOUT), PART("MIG-a"), { .uuid = "GPU-z", .pci = "9" });
    assert_true(gpu_roster_hang(roster, "0", "it hangs"));
    assert_gpu(roster, 0, "GPU-a", true);
    assert_gpu(roster, 1, "MIG-a", true);
    assert_gpu(roster, 2, "GPU-z", false);
    TAKE(roster, WHOLE(GPU_LAYOUT), { .uuid = "GPU-z", .pci = "9" });
    assert_int_equal(at(roster, 1)->is_gone, 1); // while it hung
    _cleanup_strings_ struct strings released = { 0 };
    strings_add(&released, "GPU-a");
    strings_add(&released, "MIG-a");
    assert_true(gpu_roster_release(roster, &released));
    assert_true(gpu_roster_set_progress(roster, page));
    assert_int_equal(page->n_known, 2); // GPUs, of which one is released
    assert_true(gpu_roster_fits(roster, page));
    gpu_progress_free(page);
    gpu_roster_free(roster);
}

TEST(an_index_keeps_its_gpu_in_any_order)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" }, { "GPU-c", "2" });
    TAKE(roster, { "GPU-c", "0" }, { "GPU-a", "1" }, { "GPU-b", "2" });
    assert_gpu(roster, 0, "GPU-a", false);
    assert_gpu(roster, 1, "GPU-b", false);
    assert_gpu(roster, 2, "GPU-c", false);
    assert_string_equal(at(roster, 0)->pci, "1"); // it was put into another slot
    gpu_roster_free(roster);
}

TEST(a_new_gpu_gets_a_new_index_and_a_missing_one_stays_as_lost)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" });
    TAKE(roster, { "GPU-new", "0" }, { "GPU-b", "1" });
    assert_int_equal(gpu_roster_gpus(roster)->count, 3);
    assert_gpu(roster, 0, "GPU-a", true);
    assert_string_equal(at(roster, 0)->trouble, "the driver no longer lists it");
    assert_int_equal(at(roster, 0)->valid, 0);
    assert_gpu(roster, 1, "GPU-b", false);
    assert_gpu(roster, 2, "GPU-new", false);
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" }, { "GPU-new", "2" });
    assert_gpu(roster, 0, "GPU-a", false);
    assert_null(at(roster, 0)->trouble);
    gpu_roster_free(roster);
}

TEST(senseless_missing_and_double_uuids_are_dropped)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    _cleanup_free_ char *longest = xcalloc(1, 200);
    memset(longest, 'x', 120);
    TAKE(roster, { NULL, "0" }, { "", "1" }, { "GPU-a", "2", .xid_count = 1 }, { "GPU a", "3" },
        { "GPU-\x01", "4" }, { "GPU-a", "5", .xid_count = 9 }, { "GPU-b,GPU-c", "6" }, { longest, "7" },
        { "GPU-\xc3\xa4", "8" }, { "GPU-d", "9" });
    assert_int_equal(gpu_roster_gpus(roster)->count, 2);
    assert_gpu(roster, 0, "GPU-a", false);
    assert_string_equal(at(roster, 0)->pci, "2");
    assert_gpu(roster, 1, "GPU-d", false);
    gpu_roster_free(roster);
}

TEST(links_and_switches_follow_the_gpus)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0", 0, 2 }, { "GPU-b", "1", 0, 1 }, { "GPU-c", "2", 2, 8 },
        { "GPU-d", "3", 2, 4 });
    /* The same machine, listed from behind: a-b and c-d are linked, and share a switch. */
    TAKE(roster, { "GPU-d", "3", 0, 2 }, { "GPU-c", "2", 0, 1 }, { "GPU-b", "1", 2, 8 },
        { "GPU-a", "0", 2, 4 });
    assert_int_equal(at(roster, 0)->links, 2);
    assert_int_equal(at(roster, 1)->links, 1);
    assert_int_equal(at(roster, 2)->links, 8);
    assert_int_equal(at(roster, 3)->links, 4);
    assert_int_equal(at(roster, 0)->pcie_switch, 0);
    assert_int_equal(at(roster, 1)->pcie_switch, 0);
    assert_int_equal(at(roster, 2)->pcie_switch, 2);
    assert_int_equal(at(roster, 3)->pcie_switch, 2);
    /* Without the first, whose number identified the group. */
    TAKE(roster, { "GPU-b", "1", 0, 0 }, { "GPU-c", "2", 1, 4 }, { "GPU-d", "3", 1, 2 },
        { "GPU-e", "4", 3, 0 });
    assert_int_equal(at(roster, 1)->links, 0);
    assert_int_equal(at(roster, 1)->pcie_switch, 0);
    assert_int_equal(at(roster, 2)->links, 8);
    assert_int_equal(at(roster, 3)->pcie_switch, 2);
    assert_int_equal(at(roster, 4)->pcie_switch, 3);
    gpu_roster_free(roster);
}

TEST(what_a_sick_gpu_does_not_tell_is_remembered)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0", .memory_bytes = 80 });
    TAKE(roster, { "GPU-a", NULL, .is_lost = 1 });
    assert_gpu(roster, 0, "GPU-a", true);
    assert_int_equal(at(roster, 0)->memory_bytes, 80);
    assert_string_equal(at(roster, 0)->pci, "0");
    assert_non_null(at(roster, 0)->trouble);
    gpu_roster_free(roster);
}

TEST(one_that_hangs_is_lost_until_a_report_has_it)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" });
    assert_true(gpu_roster_hang(roster, "1", "it hangs"));
    assert_false(gpu_roster_hang(roster, "7", "it hangs"));
    TAKE(roster, { "GPU-a", "0" });
    assert_gpu(roster, 1, "GPU-b", true);
    assert_string_equal(at(roster, 1)->trouble, "it hangs");
    assert_true(gpu_roster_is_hung(roster, 1));
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" });
    assert_gpu(roster, 1, "GPU-b", false);
    assert_false(gpu_roster_is_hung(roster, 1));
    gpu_roster_free(roster);
}

/* Each process counts from 0. One that ran beside the last has seen what that has seen. */
TEST(errors_are_counted_over_helpers)
{
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0", .xid_count = 3 });
    gpu_roster_change_source(roster, false);
    TAKE(roster, { "GPU-a", "0", .xid_count = 0 });
    assert_int_equal(at(roster, 0)->xid_count, 3);
    assert_int_equal(at(roster, 0)->xid, 79);
    TAKE(roster, { "GPU-a", "0", .xid_count = 2 });
    assert_int_equal(at(roster, 0)->xid_count, 5);
    gpu_roster_change_source(roster, true);
    TAKE(roster, { "GPU-a", "0", .xid_count = 1 });
    assert_int_equal(at(roster, 0)->xid_count, 5);
    TAKE(roster, { "GPU-a", "0", .xid_count = 2 });
    assert_int_equal(at(roster, 0)->xid_count, 6);
    gpu_roster_free(roster);
}

TEST(numbers_outlive_an_agent_but_no_boot)
{
    char place[] = "/tmp/mgpu-roster-XXXXXX";
    assert_non_null(mkdtemp(place));
    int dirfd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct gpu_roster *roster = gpu_roster_new(dirfd, BOOT);
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" }, { "GPU-c", "2" });
    assert_true(gpu_roster_hang(roster, "1", "it hangs"));
    assert_false(gpu_roster_hang(roster, "#4", "it hangs"));
    assert_false(gpu_roster_hang(roster, "#5", "it hangs"));
    gpu_roster_forget_key(roster, "#4");
    gpu_roster_free(roster);

    roster = gpu_roster_new(dirfd, BOOT);
    assert_string_equal(gpu_roster_backend(roster), "nvml");
    assert_gpu(roster, 0, "GPU-a", true); // not seen yet
    assert_true(gpu_roster_is_hung(roster, 1));
    assert_false(gpu_roster_is_hung(roster, 2));
    assert_int_equal(gpu_roster_keys(roster)->count, 1);
    assert_string_equal(gpu_roster_keys(roster)->items[0], "#5");
    TAKE(roster, { "GPU-c", "2" }, { "GPU-a", "3" });
    assert_gpu(roster, 0, "GPU-a", false);
    assert_gpu(roster, 1, "GPU-b", true);
    assert_gpu(roster, 2, "GPU-c", false);
    gpu_roster_free(roster);

    roster = gpu_roster_new(dirfd, "22222222-2222-2222-2222-222222222222");
    assert_int_equal(gpu_roster_gpus(roster)->count, 0);
    gpu_roster_free(roster);

    assert_int_equal(file_write(dirfd, "gpus", "nonsense", 8, false), 0);
    roster = gpu_roster_new(dirfd, BOOT);
    assert_int_equal(gpu_roster_gpus(roster)->count, 0);
    gpu_roster_free(roster);
    assert_int_equal(unlinkat(dirfd, "gpus", 0), 0);
    assert_int_equal(close(dirfd), 0);
    assert_int_equal(rmdir(place), 0);
}

TEST(another_kind_of_gpus_begins_anew)
{
    static const struct seen other[] = { { "GPU-x", "9" } };
    struct gpu_roster *roster = gpu_roster_new(-1, BOOT);
    TAKE(roster, { "GPU-a", "0" }, { "GPU-b", "1" });
    take(roster, "amd", other, 1);
    assert_int_equal(gpu_roster_gpus(roster)->count, 1);
    assert_gpu(roster, 0, "GPU-x", false);
    gpu_roster_free(roster);
}

/* SPDX-License-Identifier: MIT */
/* The map with which the driver restores a process on other GPUs: all GPUs of the node, each once on both
 * sides. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/park/device_map.h"
#include "job/event.h"
#include "wire/message.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

#define GPUS 4

static char uuids[GPUS][64] = { "GPU-00000000-0000-0000-0000-00000000000a",
    "GPU-00000000-0000-0000-0000-00000000000b", "GPU-00000000-0000-0000-0000-00000000000C",
    "GPU-00000000-0000-0000-0000-00000000000d" };
static char instance[] = "MIG-00000000-0000-0000-0000-00000000000e";

/* "ab": the contents of those GPUs go to those in `to`. Returns "ac ba ...": the last digits of each pair. */
static int make(const char *from, const char *to, char *text, struct error *err)
{
    struct gpu_state states[GPUS + 2] = { 0 };
    _cleanup_(gpu_grants_clear) struct record_list grants = { 0 };
    _cleanup_strings_ struct strings home = { 0 };
    struct cuda_gpu_pair *pairs = NULL;
    size_t count = 0;
    for (size_t i = 0; i < GPUS; i++)
        states[i] = (struct gpu_state){ .uuid = uuids[i], .vendor = GPU_VENDOR_NVIDIA };
    states[GPUS] = (struct gpu_state){ .uuid = instance, .vendor = GPU_VENDOR_NVIDIA, .parent = uuids[3] };
    states[GPUS + 1] = (struct gpu_state){ .uuid = instance, .vendor = GPU_VENDOR_AMD };
    for (; *from != '\0'; from++)
        strings_add(&home, uuids[*from - 'a']);
    for (; *to != '\0'; to++)
        (void)gpu_grants_add(&grants, (uint32_t)(*to - 'a'), uuids[*to - 'a'], 0, 0);
    int r = device_map_make(&(struct record_list){ states, GPUS + 2 }, &home, &grants, &pairs, &count, err);
    for (size_t i = 0; i < count; i++)
        text += snprintf(text, 32, "%s%x%x", i > 0 ? " " : "", pairs[i].from[15], pairs[i].to[15]);
    *text = '\0';
    free(pairs);
    return r;
}

static void is(const char *from, const char *to, const char *expected)
{
    char text[64];
    struct error err = { 0 };
    assert_int_equal(make(from, to, text, &err), 0);
    assert_string_equal(text, expected);
}

TEST(a_gpu_that_is_taken_changes_places_with_one_that_was_left)
{
    is("a", "b", "ab ba cc dd");
    is("ab", "cd", "ac bd ca db");
    is("ab", "bc", "ab bc ca dd");
    is("d", "c", "aa bb cd dc");
}

TEST(contents_may_change_places_among_its_own_gpus)
{
    is("ab", "ba", "ab ba cc dd");
}

TEST(without_a_move_there_is_no_map)
{
    is("", "ab", "");
    is("ab", "ab", "");
}

TEST(what_cannot_be_told_to_the_driver_is_refused)
{
    char text[64], before[64];
    struct error err = { 0 };
    static const char *const bad[] = { "GPU-a", "GPU-00000000-0000-0000-0000-00000000000x",
        "GPU-00000000-0000-0000-0000-00000000000a0", "00000000-0000-0000-0000-00000000000a", "" };
    assert_int_equal(make("ab", "a", text, &err), -EIO);
    memcpy(before, uuids[2], sizeof(before));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(uuids[2], sizeof(uuids[2]), "%s", bad[i]);
        assert_int_equal(make("a", "b", text, &err), -EOPNOTSUPP);
    }
    memcpy(uuids[2], before, sizeof(before));
}

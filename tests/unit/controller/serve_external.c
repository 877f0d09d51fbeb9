/* SPDX-License-Identifier: MIT */
/* The text about external processes on a GPU. */

#include "controller/api/external_text.h"
#include "unit_test.h"

#define MIB         (1ULL << 20)
#define TEXT(words) ((char *)(uintptr_t)(words))

TEST(the_largest_are_named_and_the_others_counted)
{
    struct gpu_process processes[] = {
        { .pid = 1, .uid = 4000000001, .memory_bytes = 100 * MIB, .is_memory_known = 1 },
        { .pid = 2, .uid = 4000000001, .job = 7, .memory_bytes = 9000 * MIB, .is_memory_known = 1 },
        { .pid = 3,
            .uid = 4000000002,
            .memory_bytes = 512 * MIB,
            .is_memory_known = 1,
            .command = TEXT("python a.py") },
        { .pid = 4, .uid = 4000000001, .memory_bytes = 77 },
        { .pid = 5,
            .uid = 4000000001,
            .memory_bytes = 100 * MIB,
            .is_memory_known = 1,
            .container = TEXT("abc") },
    };
    const struct gpu_state gpu = { .processes = { .items = processes, .count = 5 } };
    _cleanup_buffer_ struct buffer text = { 0 };
    struct usernames *names = usernames_new();
    external_text_write(&gpu, names, &text);
    assert_string_equal(buffer_text(&text), "pid 3 (4000000002) python a.py, 512 MiB; pid 1 (4000000001), "
                                            "100 MiB; pid 5 (4000000001) in container abc, "
                                            "100 MiB and 1 more");
    usernames_free(names);
}

TEST(nobody_is_nothing)
{
    struct gpu_process own = { .pid = 2, .job = 7, .memory_bytes = MIB, .is_memory_known = 1 };
    const struct gpu_state gpu = { .processes = { .items = &own, .count = 1 } };
    _cleanup_buffer_ struct buffer text = { 0 };
    external_text_write(&gpu, NULL, &text);
    assert_int_equal(text.length, 0);
}

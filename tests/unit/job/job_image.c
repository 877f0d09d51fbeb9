/* SPDX-License-Identifier: MIT */
#include "job/image.h"
#include "unit_test.h"

TEST(names_that_a_runtime_could_misread_are_refused)
{
    static const char *const good[] = { "net", "docker://nvcr.io/nvidia/pytorch:24.05-py3", "/a/net.sif",
        "lab/net@sha256:00ff", "größe" };
    static const char *const bad[] = { "", "-v", "--privileged", "a b", "a\tb", "a\nb", "a\177" };
    struct error err = { 0 };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(image_check_name(good[i], &err), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_true(image_check_name(bad[i], &err) < 0);
}

TEST(a_mount_has_up_to_three_parts)
{
    static const struct {
        const char *text, *source, *target;
        bool is_read_only;
    } rows[] = {
        { "/data", "/data", "/data", false },
        { "/data:/set", "/data", "/set", false },
        { "/my data:/set:ro", "/my data", "/set", true },
        { "/data:/set:rw", "/data", "/set", false },
    };
    static const char *const bad[] = { "", ":", "data", "data:/set", "/data:set", "/data:/", "/data://",
        "/data:/set:", "/data:/set:z", "/data:/set:ro:x", "/a,b", "/a\nb:/c" };
    struct error err = { 0 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct image_mount mount = { 0 };
        assert_int_equal(image_mount_parse(rows[i].text, &mount, &err), 0);
        assert_string_equal(mount.source, rows[i].source);
        assert_string_equal(mount.target, rows[i].target);
        assert_int_equal(mount.is_read_only, rows[i].is_read_only);
        image_mount_clear(&mount);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct image_mount mount = { 0 };
        if (image_mount_parse(bad[i], &mount, &err) == 0)
            fail_msg("%s is not refused", bad[i]);
    }
}

TEST(files_of_apptainer_are_known_by_their_ends)
{
    assert_true(image_is_sif("/a/net.sif"));
    assert_true(image_is_sif("net.sqsh"));
    assert_false(image_is_sif(".sif"));
    assert_false(image_is_sif("net.sif:1"));
}

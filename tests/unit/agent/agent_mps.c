/* SPDX-License-Identifier: MIT */
/* The commands to an MPS control daemon, its answers, and its folder. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/mps/control.h"
#include "agent/mps/folder.h"
#include "base/memory.h"
#include "unit_test.h"

#define MIB (UINT64_C(1) << 20)

TEST(limits_are_set_for_future_servers_and_for_those_that_run)
{
    const struct mps_limits limits = { 8183 * MIB + MIB / 2, 34 };
    const pid_t servers[] = { 71 };
    _cleanup_free_ char *first = mps_control_commands(&limits, NULL, 0);
    assert_string_equal(
        first, "set_default_device_pinned_mem_limit 0 8183M\nset_default_active_thread_percentage 34\n");
    _cleanup_free_ char *later = mps_control_commands(&limits, servers, 1);
    assert_non_null(strstr(later, "\nset_device_pinned_mem_limit 71 0 8183M\n"));
    assert_non_null(strstr(later, "\nset_active_thread_percentage 71 34\n"));
}

TEST(an_answer_is_judged_by_its_status_and_its_words)
{
    static const struct {
        int status;
        const char *output;
        bool is_good;
        const char *text;
    } rows[] = {
        { 0, "", true, NULL },
        { 0, "34.0\n", true, NULL },
        { 0, "Cannot find MPS control daemon process\nmore\n", false,
            "refused: Cannot find MPS control daemon process" },
        { 0, "34.0\nUnrecognized command\n", false, "refused: 34.0" },
        { 1 << 8, "", false, "ended with status 1" },
        { 9, "", false, "ended with status 137" },
        { 1 << 8, "\x1b[31mno\n", false, "refused: \\x1b[31mno" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int pair[2];
        struct error err = { 0 };
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(
            write(pair[0], rows[i].output, strlen(rows[i].output)), (ssize_t)strlen(rows[i].output));
        assert_int_equal(mps_control_judge(rows[i].status, pair[1], &err) == 0, rows[i].is_good);
        if (!rows[i].is_good)
            assert_non_null(strstr(err.message, rows[i].text));
        (void)close(pair[0]);
        (void)close(pair[1]);
    }
}

TEST(the_name_of_a_folder_is_short_and_harmless)
{
    static const struct {
        uid_t uid;
        const char *uuid, *name;
    } rows[] = {
        { 1001, "GPU-1b2c3d4e-0000-1111-2222-333344445555", "1001.1b2c3d4e" },
        { 4294967294U, "GPU-1b2c3d4e", "4294967294.1b2c3d4e" },
        { 0, "a", "0.a" },
        { 7, "GPU-../../x", "7.______x" },
        { 7, "", "7." },
    };
    char name[MPS_NAME_SIZE];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mps_folder_name(rows[i].uid, rows[i].uuid, name);
        assert_string_equal(name, rows[i].name);
    }
}

TEST(a_folder_keeps_the_record_and_is_removed_with_everything)
{
    char dir[] = "/tmp/mgpu-mps-XXXXXX", uuid[] = "GPU-a";
    assert_non_null(mkdtemp(dir));
    _cleanup_free_ char *path = xasprintf("%s/1.a", dir);
    const struct mps_record record = {
        .uid = 1, .pid = 2, .start = 3, .uuid = uuid, .bytes = 4 * MIB, .percent = 5
    };
    struct mps_record read;
    assert_int_equal(mps_folder_make(path, geteuid(), getegid(), geteuid() == 0), 0);
    assert_true(mps_folder_read(path, &read) < 0);
    assert_int_equal(mps_folder_write(path, &record), 0);
    assert_int_equal(mps_folder_read(path, &read), 0);
    assert_string_equal(read.uuid, uuid);
    assert_true(
        read.uid == 1 && read.pid == 2 && read.start == 3 && read.bytes == 4 * MIB && read.percent == 5);
    record_clear(&mps_record_type, &read);
    mps_folder_remove(path);
    assert_int_equal(rmdir(dir), 0);
}

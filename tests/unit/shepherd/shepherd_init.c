/* SPDX-License-Identifier: MIT */
/* The status file. What the init does is seen through the program, in shepherd_launch.c and _watch.c. */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shepherd/init.h"
#include "unit_test.h"

TEST(a_status_comes_back_as_written)
{
    _cleanup_close_ int fd = memfd_create("status", MFD_CLOEXEC);
    struct init_status status = { .phase = INIT_ENDED, .wait_status = 0x2a00, .cpu_ms = 17 }, again;
    assert_int_equal(init_write_status(fd, &status), 0);
    assert_int_equal(init_read_status(fd, &again), 0);
    assert_memory_equal(&status, &again, sizeof(status));
}

TEST(every_changed_byte_is_noticed)
{
    _cleanup_close_ int fd = memfd_create("status", MFD_CLOEXEC);
    struct init_status status = { .phase = INIT_EXECUTING, .leader_pid = 4711 }, again;
    for (off_t at = 0; at < (off_t)sizeof(status); at++) {
        uint8_t byte;
        assert_int_equal(init_write_status(fd, &status), 0);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_int_equal(init_read_status(fd, &again), -EBADMSG);
    }
}

TEST(an_empty_file_is_no_status)
{
    _cleanup_close_ int fd = memfd_create("status", MFD_CLOEXEC);
    struct init_status status;
    assert_int_equal(init_read_status(fd, &status), -EBADMSG);
}

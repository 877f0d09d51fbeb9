/* SPDX-License-Identifier: MIT */
/* Files written whole, locks that die with their owner; in a fresh directory per test. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

struct place {
    char path[64];
    int dirfd;
};

int __wrap_fsync(int fd);
int __real_fsync(int fd);
static int n_synced;      // calls
static int fails_at = -1; // this one fails

int __wrap_fsync(int fd)
{
    if (n_synced++ != fails_at)
        return __real_fsync(fd);
    errno = EIO;
    return -1;
}

static int enter(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    (void)snprintf(place->path, sizeof(place->path), "/tmp/mgpu-unit-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    place->dirfd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->dirfd >= 0);
    *state = place;
    return 0;
}

static int leave(void **state)
{
    struct place *place = *state;
    _cleanup_free_ char *command = xasprintf("rm -rf %s", place->path);
    assert_int_equal(system(command), 0);
    (void)close(place->dirfd);
    free(place);
    return 0;
}

#define CASE(name, place) TEST_ON(name, struct place *place, enter, leave)

struct note {
    uint32_t number;
    char *text;
};
static const struct record_field note_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct note, number, 0),
    RECORD_FIELD(2, RECORD_STRING, struct note, text, 100),
};
static const struct record_type note_record = RECORD_TYPE(900, "note", struct note, note_fields);

CASE(a_written_file_reads_back, place)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    assert_int_equal(file_write(place->dirfd, "f", "hello", 5, true), 0);
    assert_int_equal(file_read(place->dirfd, "f", 5, &bytes), 0);
    assert_string_equal(buffer_text(&bytes), "hello");
}

CASE(a_durable_file_and_its_directory_are_synced, place)
{
    n_synced = 0;
    assert_int_equal(file_write(place->dirfd, "f", "hello", 5, false), 0);
    assert_int_equal(n_synced, 0);
    assert_int_equal(file_write(place->dirfd, "f", "hello", 5, true), 0);
    assert_int_equal(n_synced, 2);
    for (fails_at = 0; fails_at < 2; fails_at++) {
        n_synced = 0;
        assert_int_equal(file_write(place->dirfd, "f", "hello", 5, true), -EIO);
    }
    fails_at = -1;
}

CASE(a_written_file_is_private_and_leaves_no_temporary, place)
{
    struct stat st;
    assert_int_equal(file_write(place->dirfd, "f", "x", 1, false), 0);
    assert_int_equal(fstatat(place->dirfd, "f", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(faccessat(place->dirfd, "f.tmp", F_OK, 0), -1);
}

CASE(writing_again_replaces_the_whole_file, place)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    assert_int_equal(file_write(place->dirfd, "f", "a long first text", 17, false), 0);
    assert_int_equal(file_write(place->dirfd, "f", "short", 5, false), 0);
    assert_int_equal(file_read(place->dirfd, "f", 100, &bytes), 0);
    assert_string_equal(buffer_text(&bytes), "short");
}

CASE(a_file_over_the_limit_is_refused, place)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    assert_int_equal(file_write(place->dirfd, "f", "hello", 5, false), 0);
    assert_int_equal(file_read(place->dirfd, "f", 4, &bytes), -EFBIG);
}

CASE(a_symlink_is_never_followed, place)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    assert_int_equal(symlinkat("/etc/passwd", place->dirfd, "f"), 0);
    assert_int_equal(file_read(place->dirfd, "f", 1U << 20, &bytes), -ELOOP);
    assert_int_equal(symlinkat("/etc/passwd", place->dirfd, "g.tmp"), 0);
    assert_int_equal(file_write(place->dirfd, "g", "x", 1, false), -ELOOP);
}

CASE(a_missing_file_says_so, place)
{
    struct note note = { 0 };
    struct error err = { 0 };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    assert_int_equal(file_read(place->dirfd, "none", 10, &bytes), -ENOENT);
    assert_int_equal(file_read_record(place->dirfd, "none", &note_record, &note, &err), -ENOENT);
    assert_string_equal(err.message, "cannot read none: No such file or directory");
}

CASE(a_name_that_is_too_long_is_refused, place)
{
    char name[300];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(file_write(place->dirfd, name, "x", 1, false), -ENAMETOOLONG);
}

CASE(a_record_file_reads_back, place)
{
    char text[] = "text";
    const struct note note = { .number = 7, .text = text };
    struct note back = { 0 };
    assert_int_equal(file_write_record(place->dirfd, "r", &note_record, &note, false), 0);
    assert_int_equal(file_read_record(place->dirfd, "r", &note_record, &back, NULL), 0);
    assert_int_equal(back.number, 7);
    assert_string_equal(back.text, "text");
    record_clear(&note_record, &back);
}

CASE(a_torn_record_file_is_refused, place)
{
    const struct note note = { .number = 7 };
    struct note back = { 0 };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&note_record, &note, &bytes);
    assert_int_equal(file_write(place->dirfd, "r", bytes.bytes, bytes.length - 1, false), 0);
    assert_int_equal(file_read_record(place->dirfd, "r", &note_record, &back, NULL), -EBADMSG);
}

CASE(directories_are_made_with_their_parents, place)
{
    struct stat st;
    _cleanup_free_ char *path = xasprintf("%s/a/b/c", place->path);
    assert_int_equal(make_directories(path, 0700), 0);
    assert_int_equal(make_directories(path, 0700), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

CASE(a_file_in_the_way_of_a_directory_is_an_error, place)
{
    _cleanup_free_ char *path = xasprintf("%s/f/below", place->path);
    assert_int_equal(file_write(place->dirfd, "f", "x", 1, false), 0);
    assert_int_equal(make_directories(path, 0700), -ENOTDIR);
    assert_int_equal(make_directories("", 0700), -ENOENT);
}

CASE(a_lock_is_seen_by_others_and_dies_with_its_owner, place)
{
    _cleanup_close_ int fd = openat(place->dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int ready[2], leave_pipe[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(leave_pipe), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int own = openat(place->dirfd, "lock", O_RDWR | O_CLOEXEC);
        char byte = lock_file(own) == 0 ? 'y' : 'n';
        (void)!write(ready[1], &byte, 1);
        (void)close(leave_pipe[1]);
        (void)!read(leave_pipe[0], &byte, 1);
        _exit(0);
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_true(is_file_locked(fd));
    assert_int_equal(lock_file(fd), -EAGAIN);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(is_file_locked(fd));
    assert_int_equal(lock_file(fd), 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)close(leave_pipe[0]);
    (void)close(leave_pipe[1]);
}

TEST(an_interrupted_pipe_still_gets_every_byte)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(ends[1]);
        char chunk[1000];
        size_t total = 0;
        for (ssize_t n; (n = read(ends[0], chunk, sizeof(chunk))) > 0;)
            total += (size_t)n;
        _exit(total == 300000 ? 0 : 1);
    }
    (void)close(ends[0]);
    _cleanup_free_ char *bytes = xcalloc(300000, 1);
    assert_int_equal(write_all(ends[1], bytes, 300000), 0);
    (void)close(ends[1]);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(write_all(-1, "x", 1), -EBADF);
}

/* As any user could who may read the file. */
TEST(a_lock_for_reading_keeps_nobody_out)
{
    static char path[] = "/tmp/mgpu-lock-XXXXXX";
    struct flock reading = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    struct stat file;
    int own = -1, stranger = mkostemp(path, O_CLOEXEC);
    assert_int_equal(fchmod(stranger, 0644), 0);
    assert_int_equal(fcntl(stranger, F_OFD_SETLK, &reading), 0);
    assert_int_equal(lock_path(path, &own), 0);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    int second = -1;
    assert_int_equal(lock_path(path, &second), -EAGAIN);
    (void)close(second);
    (void)close(own);
    (void)close(stranger);
    assert_int_equal(unlink(path), 0);
}

TEST(a_lock_file_of_an_older_version_becomes_private)
{
    static char path[] = "/tmp/mgpu-lock-XXXXXX";
    struct stat file;
    int own = -1, old = mkostemp(path, O_CLOEXEC);
    assert_int_equal(fchmod(old, 0644), 0);
    assert_int_equal(lock_path(path, &own), 0);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    (void)close(own);
    (void)close(old);
    assert_int_equal(unlink(path), 0);
}

/* SPDX-License-Identifier: MIT */
/* The spool: names, the verdict that is settled once, and the lock that proves life. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/spool.h"
#include "unit_test.h"

struct place {
    char path[64];
    int spoolfd, dirfd;
};

static int enter(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    (void)snprintf(place->path, sizeof(place->path), "/tmp/mgpu-unit-XXXXXX");
    assert_non_null(mkdtemp(place->path));
    place->spoolfd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(place->spoolfd, "42.1.0.0", 0700), 0);
    place->dirfd = openat(place->spoolfd, "42.1.0.0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    (void)close(place->spoolfd);
    free(place);
    return 0;
}

#define CASE(name, place) TEST_ON(name, struct place *place, enter, leave)

TEST(a_name_reads_back_to_its_id)
{
    const struct spool_id id = { UINT64_MAX, UINT32_MAX, 3, 4 };
    struct spool_id back = { 0 };
    char name[SPOOL_NAME_SIZE];
    spool_name(&id, name);
    assert_string_equal(name, "18446744073709551615.4294967295.3.4");
    assert_true(spool_parse_name(name, &back));
    assert_true(
        back.job == id.job && back.attempt == id.attempt && back.step == id.step && back.rank == id.rank);
}

TEST(only_exact_names_are_ids)
{
    static const char *const names[] = { "", "hints", "1.2.3", "1.2.3.4.5", "1.2.3.4x", "01.2.3.4",
        "+1.2.3.4", " 1.2.3.4", "1.2.3.-4", "../1.2.3.4", "1.2.3.4 ", "99999999999999999999999.1.1.1",
        "1.4294967296.0.0" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct spool_id id = { 7, 7, 7, 7 };
        assert_false(spool_parse_name(names[i], &id));
        assert_int_equal(id.job, 7);
    }
}

CASE(there_is_no_verdict_before_one_is_settled, place)
{
    assert_int_equal(spool_verdict(place->dirfd), VERDICT_NONE);
}

CASE(the_first_verdict_stands, place)
{
    assert_int_equal(spool_decide(place->dirfd, VERDICT_NOGO), VERDICT_NOGO);
    assert_int_equal(spool_decide(place->dirfd, VERDICT_GO), VERDICT_NOGO);
    assert_int_equal(spool_decide(place->dirfd, VERDICT_NOGO), VERDICT_NOGO);
    assert_int_equal(spool_verdict(place->dirfd), VERDICT_NOGO);
}

CASE(of_many_racers_all_see_the_same_verdict, place)
{
    for (int round = 0; round < 20; round++) {
        pid_t pids[8];
        (void)unlinkat(place->dirfd, SPOOL_VERDICT, 0);
        for (size_t i = 0; i < 8; i++) {
            pids[i] = fork();
            assert_true(pids[i] >= 0);
            if (pids[i] == 0)
                _exit(spool_decide(place->dirfd, i % 2 == 0 ? VERDICT_GO : VERDICT_NOGO));
        }
        for (size_t i = 0; i < 8; i++) {
            int status = 0;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(WEXITSTATUS(status), spool_verdict(place->dirfd));
        }
    }
}

CASE(a_damaged_verdict_is_an_error_not_a_go, place)
{
    assert_int_equal(file_write(place->dirfd, SPOOL_VERDICT, "g", 1, false), 0);
    assert_true(spool_verdict(place->dirfd) < 0);
    assert_true(spool_decide(place->dirfd, VERDICT_GO) < 0);
}

CASE(the_lock_tells_whether_the_shepherd_lives, place)
{
    assert_false(spool_is_alive(place->dirfd));
    int fd = openat(place->dirfd, SPOOL_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_false(spool_is_alive(place->dirfd));
    assert_int_equal(lock_file(fd), 0);
    assert_true(spool_is_alive(place->dirfd));
    (void)close(fd);
    assert_false(spool_is_alive(place->dirfd));
}

CASE(removing_takes_the_known_files_and_the_directory, place)
{
    assert_int_equal(file_write(place->dirfd, SPOOL_SPEC, "x", 1, false), 0);
    assert_int_equal(file_write(place->dirfd, "exit.tmp", "x", 1, false), 0);
    assert_int_equal(spool_decide(place->dirfd, VERDICT_GO), VERDICT_GO);
    assert_int_equal(spool_remove(place->spoolfd, "42.1.0.0"), 0);
    assert_int_equal(faccessat(place->spoolfd, "42.1.0.0", F_OK, 0), -1);
    assert_int_equal(spool_remove(place->spoolfd, "42.1.0.0"), 0);
}

/* An agent that dies in between leaves an entry that cannot start, and whose end is known as long as it ran.
 */
CASE(end_outlives_verdict_and_spec_but_no_other_file, place)
{
    static const char *const files[] = { SPOOL_SPEC, SPOOL_VERDICT, SPOOL_EXIT, SPOOL_LOCK, SPOOL_STARTED,
        SPOOL_STATUS, SPOOL_CTL, SPOOL_REPORT, SPOOL_USAGE, SPOOL_TERMS, SPOOL_STOP };
    _cleanup_free_ char *path = xasprintf("%s/42.1.0.0", place->path);
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    _cleanup_close_ int watch_fd = inotify_init1(IN_CLOEXEC);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_int_equal(file_write(place->dirfd, files[i], "x", 1, false), 0);
    assert_true(inotify_add_watch(watch_fd, path, IN_DELETE) >= 0);
    assert_int_equal(spool_remove(place->spoolfd, "42.1.0.0"), 0);
    assert_int_equal(faccessat(place->spoolfd, "42.1.0.0", F_OK, 0), -1);
    ssize_t n = read(watch_fd, events, sizeof(events));
    const char *at = events;
    for (size_t i = 0; i < 3; i++) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
        assert_true(at < events + n);
        assert_string_equal(event->name, files[i]);
        at += sizeof(*event) + event->len;
    }
}

CASE(what_was_said_is_read_back_when_it_is_whole, place)
{
    struct spool_report said = { .has_progress = 1, .progress_ppm = 7, .status = "epoch 3" }, back = { 0 };
    assert_false(spool_read_report(place->dirfd, &back));
    _cleanup_close_ int fd = openat(place->dirfd, SPOOL_REPORT, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(spool_write_report(fd, &said), 0);
    assert_true(spool_read_report(place->dirfd, &back));
    assert_int_equal(back.progress_ppm, 7);
    assert_string_equal(back.status, "epoch 3");
    /* Half of the next one. */
    assert_int_equal(pwrite(fd, "X", 1, (off_t)offsetof(struct spool_report, status)), 1);
    assert_false(spool_read_report(place->dirfd, &back));
    assert_string_equal(back.status, "epoch 3");
}

CASE(a_renewal_needs_no_room_and_is_believed_when_it_is_whole, place)
{
    struct stat first, second;
    int64_t until_ms = 5;
    assert_false(spool_read_renewed(place->dirfd, &until_ms));
    assert_int_equal(until_ms, 5);
    assert_int_equal(spool_renew(place->dirfd, 1000), 0);
    assert_int_equal(fstatat(place->dirfd, SPOOL_RENEWED, &first, 0), 0);
    assert_int_equal(spool_renew(place->dirfd, 2000), 0);
    assert_int_equal(fstatat(place->dirfd, SPOOL_RENEWED, &second, 0), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_true(spool_read_renewed(place->dirfd, &until_ms));
    assert_int_equal(until_ms, 2000);
    struct spool_renewed torn = { .magic = SPOOL_RENEWED_MAGIC, .crc = 1, .until_ms = 2255 };
    assert_int_equal(file_write(place->dirfd, SPOOL_RENEWED, &torn, sizeof(torn), false), 0);
    assert_false(spool_read_renewed(place->dirfd, &until_ms));
    torn.crc = 0; // of an agent of the last version
    assert_int_equal(file_write(place->dirfd, SPOOL_RENEWED, &torn, sizeof(torn), false), 0);
    assert_true(spool_read_renewed(place->dirfd, &until_ms));
    assert_int_equal(until_ms, 2255);
}

CASE(removing_leaves_a_strangers_file_alone, place)
{
    assert_int_equal(file_write(place->dirfd, "precious", "x", 1, false), 0);
    assert_true(spool_remove(place->spoolfd, "42.1.0.0") < 0);
    assert_int_equal(faccessat(place->dirfd, "precious", F_OK, 0), 0);
}

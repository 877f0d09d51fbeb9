/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/node/shared_memory.h"
#include "unit_test.h"

struct place {
    char folder[64], table[96];
};

static void make_place(struct place *place)
{
    (void)snprintf(place->folder, sizeof(place->folder), "/tmp/mgpu-shm-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->table, sizeof(place->table), "%s.table", place->folder);
}

static void write_table(const struct place *place, const char *lines)
{
    FILE *out = fopen(place->table, "w");
    assert_non_null(out);
    (void)fprintf(
        out, "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n%s", lines);
    (void)fclose(out);
}

static int make_file(const struct place *place, const char *name, size_t bytes)
{
    char path[160], byte = 'x';
    (void)snprintf(path, sizeof(path), "%s/%s", place->folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t at = 0; at < bytes; at += 4096)
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    return fd;
}

static void remove_place(const struct place *place)
{
    char command[200];
    (void)snprintf(command, sizeof(command), "rm -rf '%s' '%s'", place->folder, place->table);
    assert_int_equal(system(command), 0);
}

static size_t find(const struct place *place, uint32_t uid, int64_t since_ms, struct shared_memory *ret)
{
    return shared_memory_find_in(place->folder, place->table, uid, since_ms, ret);
}

TEST(files_that_no_process_uses_are_found_with_their_size)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    struct place place;
    make_place(&place);
    int opened = make_file(&place, "opened", 4096), mapped = make_file(&place, "mapped", 4096);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, mapped, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    (void)close(mapped);
    (void)close(make_file(&place, "left", 3 * 4096));
    assert_int_equal(find(&place, geteuid(), 0, found), 1);
    assert_string_equal(found[0].name, "left");
    assert_true(found[0].bytes >= 4096 && found[0].uid == geteuid());
    (void)munmap(map, 4096);
    (void)close(opened);
    assert_int_equal(find(&place, geteuid(), 0, found), 3);
    assert_int_equal(find(&place, SHARED_MEMORY_ALL, 0, found), 3);
    assert_int_equal(find(&place, geteuid() + 1, 0, found), 0);
    assert_int_equal(find(&place, geteuid(), clock_wall_ms() + 60000, found), 0);
    remove_place(&place);
}

TEST(only_segments_to_which_nothing_is_attached_are_found)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    struct place place;
    make_place(&place);
    write_table(&place, "0 32768 666 4096 1 1 0 1000 1000 1000 1000 0 0 100 4096 0\n"
                        "0 32769 666 4096 1 1 2 1000 1000 1000 1000 0 0 100 4096 0\n"
                        "0 32770 1666 4096 1 1 0 1001 1000 1000 1000 0 0 200 8192 0\n"
                        "not a line\n\n0 1\n");
    assert_int_equal(find(&place, 1000, 0, found), 1);
    assert_string_equal(found[0].name, "segment 32768");
    assert_int_equal(found[0].bytes, 4096);
    assert_int_equal(find(&place, SHARED_MEMORY_ALL, 0, found), 2);
    assert_int_equal(find(&place, SHARED_MEMORY_ALL, 150000, found), 1);
    assert_int_equal(found[0].bytes, 8192);
    remove_place(&place);
}

TEST(more_files_than_fit_are_cut_off)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    struct place place;
    make_place(&place);
    write_table(&place, "0 32768 666 4096 1 1 0 1000 1000 1000 1000 0 0 100 4096 0\n");
    for (unsigned i = 0; i < SHARED_MEMORY_MAX + 5; i++) {
        char name[200];
        (void)snprintf(name, sizeof(name), "%0100u", i);
        (void)close(make_file(&place, name, 0));
    }
    assert_int_equal(find(&place, SHARED_MEMORY_ALL, 0, found), SHARED_MEMORY_MAX);
    assert_int_equal(strlen(found[0].name), SHARED_MEMORY_NAME - 1);
    remove_place(&place);
}

/* Else each end of a job would take as long as the list of what others have there. */
TEST(a_folder_without_changes_is_not_read)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    struct place place;
    make_place(&place);
    (void)close(make_file(&place, "left", 4096));
    const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    assert_int_equal(utimensat(AT_FDCWD, place.folder, times, 0), 0);
    assert_int_equal(find(&place, geteuid(), 1000 * 1000 + 1, found), 0);
    assert_int_equal(find(&place, geteuid(), 1000 * 1000, found), 1);
    remove_place(&place);
}

/* Gives the entry at this place of the folder, in the order in which it is read, to a user. */
static void give(const struct place *place, size_t at, uid_t uid)
{
    const struct dirent *entry = NULL;
    DIR *dir = opendir(place->folder);
    assert_non_null(dir);
    for (size_t i = 0; i < at; i++) {
        entry = readdir(dir);
        assert_non_null(entry);
    }
    assert_int_equal(fchownat(dirfd(dir), entry->d_name, uid, 0, 0), 0);
    (void)closedir(dir);
}

/* However many files others have there, so many are looked at. "." and ".." count as well. */
TEST(no_more_than_4096_entries_are_read)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    struct place place;
    if (geteuid() != 0)
        skip();
    make_place(&place);
    for (unsigned i = 0; i < 4096; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%u", i);
        (void)close(make_file(&place, name, 0));
    }
    give(&place, 4097, 65534);
    assert_int_equal(find(&place, 65534, 0, found), 0);
    give(&place, 4096, 65534);
    assert_int_equal(find(&place, 65534, 0, found), 1);
    remove_place(&place);
}

TEST(segments_are_asked_for_one_by_one_before_their_table_is_read)
{
    int64_t now_ms = clock_wall_ms();
    if (geteuid() != 0 || unshare(CLONE_NEWIPC) < 0)
        skip();
    int others = shmget(IPC_PRIVATE, 4096, 0600);
    struct shmid_ds segment;
    assert_int_equal(shmctl(others, IPC_STAT, &segment), 0);
    assert_true(shared_memory_may_have_segments(0, now_ms));
    assert_true(shared_memory_may_have_segments(SHARED_MEMORY_ALL, now_ms));
    assert_false(shared_memory_may_have_segments(65534, now_ms));
    assert_false(shared_memory_may_have_segments(0, now_ms + 60000));
    void *attached = shmat(others, NULL, 0);
    assert_false(shared_memory_may_have_segments(0, now_ms));
    assert_int_equal(shmdt(attached), 0);
    segment.shm_perm.uid = 65534;
    assert_int_equal(shmctl(others, IPC_SET, &segment), 0);
    assert_true(shared_memory_may_have_segments(65534, now_ms));
    assert_false(shared_memory_may_have_segments(0, now_ms));
    assert_int_equal(shmctl(others, IPC_RMID, NULL), 0);
}

/* A process of another user that has the file open, as by a descriptor that it inherited. */
static size_t find_beside_stranger(const struct place *place, mode_t mode, struct shared_memory *ret)
{
    int fd = make_file(place, "left", 4096), ready[2];
    char byte;
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t stranger = fork();
    if (stranger == 0) {
        assert_int_equal(setuid(65534), 0);
        assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0); // else its files in /proc are root's
        assert_int_equal(write(ready[1], "x", 1), 1);
        (void)pause();
    }
    (void)close(fd);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    size_t count = find(place, geteuid(), 0, ret);
    assert_int_equal(kill(stranger, SIGKILL), 0);
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return count;
}

TEST(processes_that_cannot_open_a_file_are_not_inspected)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    struct place place;
    if (geteuid() != 0)
        skip();
    make_place(&place);
    assert_int_equal(find_beside_stranger(&place, 0600, found), 1);
    assert_int_equal(find_beside_stranger(&place, 0606, found), 0);
    remove_place(&place);
}

TEST(a_machine_without_the_folder_has_none)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    assert_int_equal(shared_memory_find_in("/nonexistent", "/nonexistent", 0, 0, found), 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * First the files of the folder are collected, then those that a process has open or mapped are removed from
 * the list. A shepherd does this before it reports the end of a job, so what other users have must not make
 * it slow: the folder is read only if something was created or removed in it since, at most ENTRIES_MAX
 * entries of it are read, processes of users who cannot open any of the files are not inspected, and the
 * table of segments is read only if one of the user's is in it.
 */
#include "base/node/shared_memory.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/files.h"

#define FOLDER     "/dev/shm"
#define SEGMENTS   "/proc/sysvipc/shm"
#define BLOCK_SIZE 512 // of st_blocks

#define ENTRIES_MAX 4096U

struct search {
    struct shared_memory *items;
    struct {
        dev_t device;
        ino_t inode;
        bool is_used;
    } files[SHARED_MEMORY_MAX]; // of the items with the same index
    size_t count;
    bool is_shared; // others than the owner may open one of the files
};

/* --- what there is --- */

static int64_t created_ms(int folder_fd, const char *name, const struct stat *st)
{
    struct statx times;
    if (statx(folder_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &times) == 0 &&
        (times.stx_mask & STATX_BTIME) != 0)
        return times.stx_btime.tv_sec * 1000 + times.stx_btime.tv_nsec / 1000000;
    return st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
}

static void add_file(struct search *search, int folder_fd, const char *name, uint32_t uid, int64_t since_ms)
{
    struct stat st;
    if (search->count == SHARED_MEMORY_MAX || fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode) || (uid != SHARED_MEMORY_ALL && st.st_uid != uid) ||
        created_ms(folder_fd, name, &st) < since_ms)
        return;
    struct shared_memory *item = &search->items[search->count];
    item->uid = st.st_uid;
    item->bytes = (uint64_t)st.st_blocks * BLOCK_SIZE;
    (void)snprintf(item->name, sizeof(item->name), "%.*s", SHARED_MEMORY_NAME - 1, name);
    search->files[search->count].device = st.st_dev;
    search->files[search->count].inode = st.st_ino;
    search->is_shared |= (st.st_mode & (S_IRWXG | S_IRWXO)) != 0;
    search->files[search->count++].is_used = false;
}

/* Each file that is created changes the time of its folder. */
static bool is_unchanged(const char *folder, int64_t since_ms)
{
    struct stat st;
    return stat(folder, &st) == 0 && st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 < since_ms;
}

static void collect(struct search *search, const char *folder, uint32_t uid, int64_t since_ms)
{
    DIR *dir = is_unchanged(folder, since_ms) ? NULL : opendir(folder);
    if (dir == NULL)
        return;
    const struct dirent *entry;
    for (size_t i = 0; i < ENTRIES_MAX && (entry = readdir(dir)) != NULL; i++)
        add_file(search, dirfd(dir), entry->d_name, uid, since_ms);
    (void)closedir(dir);
}

/* --- what is used --- */

static void cross_out(struct search *search, dev_t device, ino_t inode)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->files[i].inode == inode && search->files[i].device == device)
            search->files[i].is_used = true;
}

/* "7f..-7f.. rw-s 00000000 00:19 1234 /dev/shm/name": proc_pid_maps(5). */
static void cross_out_map(struct search *search, const char *line)
{
    unsigned major_number, minor_number;
    unsigned long long inode;
    if (sscanf(line, "%*s %*s %*s %x:%x %llu", &major_number, &minor_number, &inode) == 3)
        cross_out(search, makedev(major_number, minor_number), (ino_t)inode);
}

static void cross_out_maps(struct search *search, int process_fd)
{
    int fd = openat(process_fd, "maps", O_RDONLY | O_CLOEXEC);
    FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
    char line[512]; // the numbers come first
    if (maps == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    for (bool is_start = true; fgets(line, sizeof(line), maps) != NULL;) {
        if (is_start)
            cross_out_map(search, line);
        is_start = strchr(line, '\n') != NULL;
    }
    (void)fclose(maps);
}

static void cross_out_open(struct search *search, int process_fd)
{
    int fd = openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct stat st;
    if (dir == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]) && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
            cross_out(search, st.st_dev, st.st_ino);
    (void)closedir(dir);
}

static bool may_use(const struct search *search, int process_fd, uint32_t uid)
{
    struct stat st;
    return search->is_shared || uid == SHARED_MEMORY_ALL || fstat(process_fd, &st) < 0 || st.st_uid == 0 ||
           st.st_uid == uid;
}

static void ask_processes(struct search *search, uint32_t uid)
{
    DIR *dir = search->count > 0 ? opendir("/proc") : NULL;
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        _cleanup_close_ int fd = openat(dirfd(dir), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || !may_use(search, fd, uid))
            continue;
        cross_out_maps(search, fd);
        cross_out_open(search, fd);
    }
    (void)closedir(dir);
}

static void keep_unused(struct search *search)
{
    size_t kept = 0;
    for (size_t i = 0; i < search->count; i++)
        if (!search->files[i].is_used)
            search->items[kept++] = search->items[i];
    search->count = kept;
}

/* --- System V --- */

/* The kernel tells of single segments in a fiftieth of the time that it needs for the same lines of its
 * table. */
bool shared_memory_may_have_segments(uint32_t uid, int64_t since_ms)
{
    struct shminfo limits;
    struct shmid_ds segment;
    bool is_told = false; // not by kernels before 4.17
    int last = shmctl(0, IPC_INFO, (struct shmid_ds *)(void *)&limits);
    for (int i = 0; i <= last; i++) {
        if (shmctl(i, SHM_STAT_ANY, &segment) < 0)
            continue;
        is_told = true;
        if (segment.shm_nattch == 0 && (uid == SHARED_MEMORY_ALL || segment.shm_perm.uid == uid) &&
            (int64_t)segment.shm_ctime >= since_ms / 1000)
            return true;
    }
    return !is_told;
}

/* A line of sysvipc(5): key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap.
 */
static void add_segment(struct search *search, const char *line, uint32_t uid, int64_t since_ms)
{
    int id;
    unsigned owner;
    unsigned long long attached, changed, resident;
    if (search->count == SHARED_MEMORY_MAX ||
        sscanf(line, "%*d %d %*o %*u %*u %*u %llu %u %*u %*u %*u %*u %*u %llu %llu", &id, &attached, &owner,
            &changed, &resident) != 5 ||
        attached > 0 || (uid != SHARED_MEMORY_ALL && owner != uid) || (int64_t)changed < since_ms / 1000)
        return;
    struct shared_memory *item = &search->items[search->count++];
    item->uid = owner;
    item->bytes = resident;
    (void)snprintf(item->name, sizeof(item->name), "segment %d", id);
}

static void collect_segments(struct search *search, const char *table, uint32_t uid, int64_t since_ms)
{
    FILE *lines = table != NULL ? fopen(table, "re") : NULL;
    char line[512];
    if (lines == NULL)
        return;
    while (fgets(line, sizeof(line), lines) != NULL)
        add_segment(search, line, uid, since_ms);
    (void)fclose(lines);
}

size_t shared_memory_find_in(const char *folder, const char *segments, uint32_t uid, int64_t since_ms,
    struct shared_memory ret[SHARED_MEMORY_MAX])
{
    struct search search = { .items = ret };
    collect(&search, folder, uid, since_ms);
    ask_processes(&search, uid);
    keep_unused(&search);
    collect_segments(&search, segments, uid, since_ms);
    return search.count;
}

size_t shared_memory_find(uint32_t uid, int64_t since_ms, struct shared_memory ret[SHARED_MEMORY_MAX])
{
    const char *segments = shared_memory_may_have_segments(uid, since_ms) ? SEGMENTS : NULL;
    return shared_memory_find_in(FOLDER, segments, uid, since_ms, ret);
}

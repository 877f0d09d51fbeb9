/* SPDX-License-Identifier: MIT */
#include "agent/host/persist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/spool.h"
#include "wire/message.h"

#define NODE_DIR  "node"
#define BOOT_FILE "boot"
#define FILE_MAX  64 // bytes of each file
#define SEEN_MAX  80

static void closedirp(DIR **dir)
{
    if (*dir != NULL)
        (void)closedir(*dir);
}

int persist_open(const char *state_dir, struct error *err)
{
    struct stat status;
    _cleanup_free_ char *path = xasprintf("%s/%s", state_dir, NODE_DIR);
    int r = make_directories(state_dir, 0755);
    if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
        r = -errno;
    if (r < 0)
        return error_set_errno(err, r, "cannot create the directory %s", path);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_set_errno(err, -errno, "cannot open the directory %s", path);
    if (status.st_uid != geteuid() || (status.st_mode & 0022) != 0)
        return error_set(err, -EPERM, "%s is writable by other users: it must belong to uid %u, mode 0700",
            path, geteuid());
    return take_fd(&fd);
}

int persist_load_epoch(int dirfd, const char *file, uint64_t *ret_epoch, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int64_t epoch;
    int r = file_read(dirfd, file, FILE_MAX, &text);
    if (r == -ENOENT) {
        *ret_epoch = 0;
        return 0;
    }
    if (r < 0)
        return error_set_errno(err, r, "cannot read the highest epoch");
    r = parse_integer(buffer_text(&text), "the stored epoch", 0, INT64_MAX, &epoch, err);
    if (r < 0)
        return r;
    *ret_epoch = (uint64_t)epoch;
    return 0;
}

/* Overwrites the existing file, which needs no space: the text of an increasing number fits into the same
 * block. */
static int overwrite(int dirfd, const char *file, const char *text, size_t length)
{
    _cleanup_close_ int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    if (pwrite(fd, text, length, 0) != (ssize_t)length)
        return -EIO;
    return fsync(fd) < 0 ? -errno : 0;
}

int persist_save_epoch(int dirfd, const char *file, uint64_t epoch, struct error *err)
{
    char text[FILE_MAX];
    int length = snprintf(text, sizeof(text), "%" PRIu64, epoch);
    int r = file_write(dirfd, file, text, (size_t)length, true);
    if ((r == -ENOSPC || r == -EDQUOT) && overwrite(dirfd, file, text, (size_t)length) == 0)
        r = 0;
    return r < 0 ? error_set_errno(err, r, "cannot store epoch %" PRIu64, epoch) : 0;
}

void persist_load_seen(int spoolfd, const char *file, struct persist_seen *ret)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    struct persist_seen seen;
    *ret = (struct persist_seen){ 0 };
    if (file_read(spoolfd, file, SEEN_MAX, &text) == 0 &&
        sscanf(buffer_text(&text), "%" SCNu64 " %" SCNd64 " %" SCNu64, &seen.epoch, &seen.began_ms,
            &seen.event) == 3)
        *ret = seen;
}

/* Written in place for each launch: the text always has the same length, and is so short that a kill does not
 * truncate it. */
void persist_save_seen(int spoolfd, const char *file, const struct persist_seen *seen)
{
    char text[SEEN_MAX];
    int length = snprintf(text, sizeof(text), "%020" PRIu64 " %020" PRId64 " %020" PRIu64, seen->epoch,
        seen->began_ms, seen->event);
    _cleanup_close_ int fd = openat(spoolfd, file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || pwrite(fd, text, (size_t)length, 0) != length)
        (void)unlinkat(spoolfd, file, 0);
}

/* No process of an earlier boot is left. That is all its entries would show, and the boot id shows it too. */
static int empty_spool(int spoolfd, struct error *err)
{
    int fd = openat(spoolfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return error_set_errno(err, -errno, "cannot read the spool");
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        struct spool_id id;
        if (!spool_parse_name(entry->d_name, &id))
            continue;
        int r = spool_remove(spoolfd, entry->d_name);
        if (r < 0)
            return error_set_errno(err, r, "cannot remove %s of an earlier boot", entry->d_name);
    }
    return 0;
}

/* The kernel's boot id alone, from an agent that did not name spools yet. */
static bool is_of_boot(const char *identity, const char *boot_id)
{
    size_t length = strlen(boot_id);
    return strncmp(identity, boot_id, length) == 0 &&
           (identity[length] == '\0' || identity[length] == BOOT_SPOOL_MARK[0]);
}

int persist_enter_boot(
    int spoolfd, const char *boot_id, char identity[PERSIST_IDENTITY_SIZE], struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = file_read(spoolfd, BOOT_FILE, FILE_MAX, &text);
    if (r < 0 && r != -ENOENT)
        return error_set_errno(err, r, "cannot read the spool's boot id");
    if (r == 0 && is_of_boot(buffer_text(&text), boot_id) && text.length < PERSIST_IDENTITY_SIZE) {
        (void)snprintf(identity, PERSIST_IDENTITY_SIZE, "%s", buffer_text(&text));
        return 0;
    }
    if (r == 0) {
        log_info("the node has rebooted: its spool was emptied");
        r = empty_spool(spoolfd, err);
        if (r < 0)
            return r;
    }
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return error_set_errno(err, -errno, "cannot get random bytes");
    (void)snprintf(identity, PERSIST_IDENTITY_SIZE, "%.*s%s%016" PRIx64, BOOT_ID_SIZE - 1, boot_id,
        BOOT_SPOOL_MARK, random);
    r = file_write(spoolfd, BOOT_FILE, identity, strlen(identity), false);
    return r < 0 ? error_set_errno(err, r, "cannot store the spool's boot id") : 0;
}

/* SPDX-License-Identifier: MIT */
/* Only the agent, and a daemon that runs as the same user, can change these directories. */
#include "agent/mps/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/user_file.h"
#include "base/files.h"
#include "base/memory.h"

#define RECORD_FILE "daemon"
#define UUID_MAX    128U
#define UUID_DIGITS 8U // of a UUID in a name

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct mps_record, uid, 0),
    RECORD_FIELD(2, RECORD_U32, struct mps_record, pid, 0),
    RECORD_FIELD(3, RECORD_U64, struct mps_record, start, 0),
    RECORD_FIELD(4, RECORD_STRING, struct mps_record, uuid, UUID_MAX),
    RECORD_FIELD(5, RECORD_SIZE, struct mps_record, bytes, 0),
    RECORD_FIELD(6, RECORD_U32, struct mps_record, percent, 0),
};
const struct record_type mps_record_type = RECORD_TYPE(65, "MPS daemon", struct mps_record, fields);

void mps_folder_name(uid_t uid, const char *uuid, char name[MPS_NAME_SIZE])
{
    size_t length = (size_t)snprintf(name, MPS_NAME_SIZE, "%u.", uid);
    const char *from = strncmp(uuid, "GPU-", 4) == 0 ? uuid + 4 : uuid;
    for (size_t i = 0; i < UUID_DIGITS && from[i] != '\0' && length < MPS_NAME_SIZE - 1; i++)
        name[length++] = isalnum((unsigned char)from[i]) ? from[i] : '_';
    name[length] = '\0';
}

static void clear(const char *path, unsigned depth)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        _cleanup_free_ char *below = xasprintf("%s/%s", path, entry->d_name);
        if (unlinkat(dirfd(dir), entry->d_name, 0) < 0 && errno == EISDIR && depth > 0)
            clear(below, depth - 1);
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

void mps_folder_remove(const char *path)
{
    clear(path, 1);
}

int mps_folder_make(const char *path, uid_t uid, gid_t gid, bool is_root)
{
    _cleanup_free_ char *log = xasprintf("%s/log", path);
    int r = make_directories(log, 0700);
    if (r < 0 || !is_root)
        return r;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : user_file_share(fd, uid, gid, 0500);
}

static int open_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int mps_folder_read(const char *path, struct mps_record *ret)
{
    _cleanup_close_ int fd = open_folder(path);
    return fd < 0 ? fd : file_read_record(fd, RECORD_FILE, &mps_record_type, ret, NULL);
}

int mps_folder_write(const char *path, const struct mps_record *record)
{
    _cleanup_close_ int fd = open_folder(path);
    return fd < 0 ? fd : file_write_record(fd, RECORD_FILE, &mps_record_type, record, false);
}

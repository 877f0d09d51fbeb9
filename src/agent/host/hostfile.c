/* SPDX-License-Identifier: MIT */
/*
 * Only the agent can change the directory; the file is written there and shared with the user through its
 * open descriptor, so its name can never refer to another file.
 */
#include "agent/host/hostfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/user_file.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define FILE_MODE 0400

char *hostfile_path(const char *run_dir, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    return xasprintf("%s/" HOSTS_DIR "/%s", run_dir, name);
}

static void list_hosts(const struct record_list *list, struct buffer *out)
{
    const struct launch_peer *peers = list->items;
    for (size_t i = 0; i < list->count; i++)
        buffer_printf(out, "%s slots=%u\n", peers[i].address, peers[i].gpus > 0 ? peers[i].gpus : 1);
}

static int write_file(const char *path, const struct buffer *text, uid_t uid, gid_t gid)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return -errno;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    int r = fd < 0 ? -errno : write_all(fd, text->bytes, text->length);
    return r < 0 ? r : user_file_share(fd, uid, gid, FILE_MODE);
}

int hostfile_write(const char *run_dir, const struct message_launch *launch, uid_t uid, gid_t gid,
    bool is_root, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (launch->peers.count == 0)
        return 0;
    _cleanup_free_ char *directory = xasprintf("%s/" HOSTS_DIR, run_dir);
    _cleanup_free_ char *path = hostfile_path(run_dir, &launch->id);
    list_hosts(&launch->peers, &text);
    int r = make_directories(directory, is_root ? 0711 : 0700);
    if (r == 0)
        r = write_file(path, &text, uid, gid);
    return r < 0 ? error_set_errno(err, r, "cannot write the list of hosts %s", path) : 0;
}

int hostfile_remove(const char *run_dir, const struct spool_id *id)
{
    _cleanup_free_ char *path = hostfile_path(run_dir, id);
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Jobs, GPUs and marks belong to nodes by name. If this machine changed its name, for example to a host name
 * that a DHCP server has just assigned, its running jobs would belong to a node that never returns, and its
 * agent would end them as attempts that no job needs.
 */
#include "controller/own_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/spool.h"
#include "controller/config/settings.h"
#include "wire/node_name.h"

#define FILE_NAME "name"

/* NULL: none is stored, or it is unusable. The caller frees it. */
static char *read_name(int dirfd)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct error err = { 0 };
    int r = file_read(dirfd, FILE_NAME, NODE_NAME_MAX + 1, &bytes);
    if (r == -ENOENT)
        return NULL;
    _cleanup_free_ char *name = xstrndup(bytes.length > 0 ? (const char *)bytes.bytes : "", bytes.length);
    name[strcspn(name, "\n")] = '\0';
    if (r < 0 || node_name_check(name, &err) < 0) {
        log_warning("the name of this node cannot be read from STATE/node/" FILE_NAME ": %s",
            r < 0 ? strerror(-r) : err.message);
        return NULL;
    }
    return take_ptr(name);
}

static int write_name(int dirfd, const char *name, struct error *err)
{
    _cleanup_free_ char *line = xasprintf("%s\n", name);
    int r = file_write(dirfd, FILE_NAME, line, strlen(line), true);
    return r < 0 ? error_set_errno(err, r, "cannot store the name of this node") : 0;
}

/* True if a job is running on this machine. */
static bool has_jobs(const char *run_dir)
{
    _cleanup_free_ char *path = xasprintf("%s/spool", run_dir);
    DIR *spool = opendir(path);
    bool is_found = false;
    if (spool == NULL)
        return false;
    for (struct dirent *entry = readdir(spool); entry != NULL && !is_found; entry = readdir(spool)) {
        struct spool_id id;
        if (!spool_parse_name(entry->d_name, &id))
            continue;
        _cleanup_close_ int fd =
            openat(dirfd(spool), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        is_found = fd >= 0 && spool_is_alive(fd);
    }
    (void)closedir(spool);
    return is_found;
}

static int check_rename(const struct controller_options *options, const char *before, struct error *err)
{
    if (!has_jobs(options->run_dir)) {
        log_warning("this node was named %s and is now %s", before, options->node);
        return 0;
    }
    (void)error_set(err, -EBUSY, "jobs run on this machine as node %s, and would end if it were named %s",
        before, options->node);
    return error_hint(err, "start with --node %s, and rename the node when no job runs here", before);
}

int own_name_resolve(struct controller_options *options, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/node", options->state_dir);
    _cleanup_close_ int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return error_set_errno(err, -errno, "cannot open %s", path);
    bool is_given = settings_find_note(options, "node") != NULL;
    _cleanup_free_ char *before = read_name(dirfd);
    if (before != NULL && strcmp(before, options->node) == 0)
        return 0;
    if (before != NULL && !is_given) {
        log_warning(
            "this machine is now called %s, and its node is still %s; to rename it, start with --node %s",
            options->node, before, options->node);
        free(options->node);
        options->node = take_ptr(before);
        return 0;
    }
    int r = before != NULL ? check_rename(options, before, err) : 0;
    return r == 0 ? write_name(dirfd, options->node, err) : r;
}

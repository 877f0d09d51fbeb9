/* SPDX-License-Identifier: MIT */
#include "agent/confine/v2.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/confine/limit_files.h"
#include "base/files.h"
#include "base/memory.h"

#define LIST_SIZE 512

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

bool v2_has_processes(const char *dir)
{
    char text[LIST_SIZE];
    return limit_files_read(dir, "cgroup.type", text, sizeof(text)) &&
           limit_files_read(dir, "cgroup.procs", text, sizeof(text)) && text[0] != '\0';
}

bool v2_has_controller(const char *dir, const char *controller)
{
    char list[LIST_SIZE];
    return limit_files_read(dir, "cgroup.controllers", list, sizeof(list)) && has_word(list, controller);
}

const char *v2_delegation(void)
{
    return geteuid() == 0
               ? "let mgpud create cgroups in /sys/fs/cgroup: start it outside of this container, or the "
                 "container with that directory writable"
               : "run mgpud as root, or give this user a delegated cgroup (systemd: loginctl "
                 "enable-linger, then start mgpud again)";
}

static int refuse(const char *dir, const char *controller, int r, struct error *err)
{
    (void)error_set_errno(err, r, "%s cannot enable the %s controller for its children", dir, controller);
    if (r == -EBUSY && geteuid() != 0)
        return error_hint(err, "loginctl enable-linger, then start mgpud again");
    if (r == -EBUSY)
        return error_hint(
            err, "start mgpud with its systemd unit, or use --cgroup with a cgroup without processes");
    return error_hint(err, "run mgpud as root, or give it a delegated cgroup (systemd: Delegate=yes)");
}

int v2_enable_children(const char *dir, const char *controller, struct error *err)
{
    char list[LIST_SIZE], word[64];
    if (limit_files_read(dir, "cgroup.subtree_control", list, sizeof(list)) && has_word(list, controller))
        return 0;
    if (!v2_has_controller(dir, controller)) {
        (void)error_set(err, -ENOSYS, "%s has no %s controller", dir, controller);
        return error_hint(err, "delegate it (systemd: Delegate=yes in its unit)");
    }
    if (v2_has_processes(dir))
        return refuse(dir, controller, -EBUSY, err);
    _cleanup_free_ char *path = xasprintf("%s/cgroup.subtree_control", dir);
    int n = snprintf(word, sizeof(word), "+%s", controller);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    int r = fd < 0 ? -errno : write_all(fd, word, (size_t)n);
    return r < 0 ? refuse(dir, controller, r, err) : 0;
}

int v2_enable(const char *instance, const char *controller, struct error *err)
{
    _cleanup_free_ char *parent = xstrdup(instance);
    char *slash = strrchr(parent, '/');
    if (slash != NULL)
        *slash = '\0';
    int r = v2_enable_children(parent, controller, err);
    return r < 0 ? r : v2_enable_children(instance, controller, err);
}

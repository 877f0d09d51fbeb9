/* SPDX-License-Identifier: MIT */
/*
 * The part of a start that may run as root: directories, the lock, sockets, the agent. Each is created with
 * its final owner and mode; root is dropped at the end. Rootless starts run the same code without changing
 * owners.
 */
#include "controller/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/listen_unix.h"
#include "base/memory.h"
#include "base/system_mgpud.h"
#include "controller/nodes/agent_process.h"
#include "controller/own_name.h"
#include "controller/tcp.h"

#define OPEN_FILES_WANTED 16384U

/* Allows one mgpud, and therefore one agent, per directory; locked before anything in it is changed. */
static int lock_directory(const char *directory, int *ret_fd, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/" RUN_LOCK, directory);
    _cleanup_close_ int fd = -1;
    int r = lock_path(path, &fd);
    if (r < 0 && r != -EAGAIN)
        return error_set_errno(err, r, "cannot lock %s", path);
    if (r == -EAGAIN) {
        char pid[16] = "";
        ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);
        (void)error_set(err, -EBUSY, "mgpud is already running with %s (pid %.*s)", directory,
            n > 0 ? (int)strcspn(pid, "\n") : 1, n > 0 ? pid : "?");
        return error_hint(err, "use that one, or start another with --state-dir and --run-dir");
    }
    char text[16];
    int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return error_set_errno(err, -errno, "cannot write %s", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Lock files can be removed; this directory is in use as long as there is state. */
static int lock_node(const struct controller_options *options, int *ret_fd, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/node", options->state_dir);
    int r = lock_private_directory(path, ret_fd);
    if (r == -EAGAIN) {
        (void)error_set(err, -EBUSY, "mgpud or an mgpu-agent is already running with %s", options->state_dir);
        return error_hint(err, "use that one, or start another with --state-dir and --run-dir");
    }
    return r < 0 ? error_set_errno(err, r, "cannot lock %s", path) : 0;
}

/* Checks the part of the path that exists. After a failure, the kernel often makes a file system
 * read-only. */
static int check_writable(const char *dir, struct error *err)
{
    _cleanup_free_ char *path = xstrdup(dir);
    struct statvfs disk;
    while (statvfs(path, &disk) < 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || slash == NULL || slash == path)
            return 0;
        *slash = '\0';
    }
    if ((disk.f_flag & ST_RDONLY) == 0)
        return 0;
    (void)error_set(err, -EROFS, "the file system of %s is read-only", dir);
    return error_hint(err,
        "make it writable (if the disk has failed, dmesg shows it) and start again; nothing was changed");
}

static int make_directories_for(struct controller *controller, struct prepared *prepared, struct error *err)
{
    const struct controller_options *options = &controller->options;
    struct user_ids self = { .uid = geteuid(), .gid = getegid() };
    prepared->store_dir = xasprintf("%s/store", options->state_dir);
    _cleanup_free_ char *node_dir = xasprintf("%s/node", options->state_dir);
    int r = check_writable(options->state_dir, err);
    if (r == 0)
        r = check_writable(options->run_dir, err);
    if (r == 0)
        r = privileges_make_directory(options->state_dir, 0755, self, err);
    if (r == 0)
        r = privileges_make_directory(options->run_dir, 0755, self, err);
    if (r == 0)
        r = privileges_make_directory(node_dir, 0700, self, err);
    return r == 0 ? privileges_make_directory(prepared->store_dir, 0700, prepared->user, err) : r;
}

static int open_sockets(struct controller *controller, struct prepared *prepared, struct error *err)
{
    const char *run_dir = controller->options.run_dir;
    _cleanup_free_ char *api = xasprintf("%s/mgpud.sock", run_dir);
    _cleanup_free_ char *link = xasprintf("%s/link.sock", run_dir);
    int r = listen_unix(api, 0666, &prepared->api_fd, err);
    if (r == 0)
        r = listen_unix(link, 0600, &prepared->link_fd, err);
    if (r < 0)
        return r;
    controller->tcp = tcp_new(controller, prepared->user.uid);
    return tcp_bind(controller->tcp, err);
}

/* The GPUs of a machine are allocated by one mgpud, even while it is stopped, because its jobs continue. A
 * user who specifies GPUs for a second mgpud is assumed to know about the first. */
static int refuse_second(const struct controller *controller, struct error *err)
{
    if (controller->is_root || strcmp(controller->options.gpus, "auto") != 0)
        return 0;
    const char *trace = system_mgpud_trace();
    if (trace == NULL)
        return 0;
    (void)error_set(err, -EBUSY,
        "this machine has an mgpu for all users, in %s%s: a second one would allocate the same GPUs", trace,
        is_socket_answered(SYSTEM_SOCKET) ? "" : " (mgpud is not running)");
    return error_hint(err, "use that one: mgpu run ... To start your own as well, name its GPUs: --gpus "
                           "sim:8x24G, " GPU_VENDOR_WORDS "or none");
}

static bool has_real_gpus(const struct controller_options *options)
{
    return !options->has_no_agent && options->cluster.etcd == NULL && strcmp(options->gpus, "none") != 0 &&
           strncmp(options->gpus, "sim:", 4) != 0;
}

/* Two mgpuds of different users, or in different directories. */
static int claim_gpus(const struct controller_options *options, struct gpu_claims *ret, struct error *err)
{
    if (!has_real_gpus(options))
        return 0;
    gpu_claims_take(options->device_dir != NULL ? options->device_dir : "/dev", ret);
    return gpu_claims_refuse(ret, strcmp(options->gpus, "auto") != 0, err);
}

int prepare(struct controller *controller, struct prepared *prepared, struct error *err)
{
    const struct controller_options *options = &controller->options;
    int r = refuse_second(controller, err);
    if (r == 0)
        r = privileges_find_user(
            options->user, controller->is_root, options->may_create_user, &prepared->user, err);
    if (r == 0)
        r = make_directories_for(controller, prepared, err);
    if (r == 0 && options->is_detached) {
        _cleanup_free_ char *log_path = xasprintf("%s/mgpud.log", options->state_dir);
        r = detach_start(log_path, &prepared->detached, err);
    }
    if (r == 0)
        r = lock_directory(options->run_dir, &prepared->lock_fds[0], err);
    if (r == 0)
        r = lock_directory(options->state_dir, &prepared->lock_fds[1], err);
    if (r == 0)
        r = lock_node(options, &prepared->lock_fds[2], err);
    if (r == 0)
        r = claim_gpus(options, &prepared->claims, err);
    if (r == 0)
        r = own_name_resolve(&controller->options, err);
    if (r == 0)
        r = open_sockets(controller, prepared, err);
    if (r == 0 && !options->has_no_agent && options->cluster.etcd == NULL) // machines join a cluster over it
        r = agent_process_start(controller, prepared->detached.log_fd, &controller->agent, err);
    /* Connections are counted against this limit (wire/limits.h); the agent and its jobs keep the previous
     * one. */
    (void)descriptors_allow(OPEN_FILES_WANTED);
    if (r == 0)
        r = privileges_drop(prepared->user, controller->is_root, err);
    controller->admin_uid = controller->is_root ? 0 : (uint32_t)getuid();
    return r;
}

void prepare_note_stop(const struct prepared *prepared)
{
    if (prepared->lock_fds[0] >= 0)
        (void)!ftruncate(prepared->lock_fds[0], 0);
}

void prepare_clear(struct prepared *prepared)
{
    free(prepared->store_dir);
    gpu_claims_clear(&prepared->claims);
    closep(&prepared->lock_fds[0]);
    closep(&prepared->lock_fds[1]);
    closep(&prepared->lock_fds[2]);
    closep(&prepared->link_fd);
    closep(&prepared->detached.log_fd);
}

/* SPDX-License-Identifier: MIT */
#include "agent/uplink/uplink_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/listen_unix.h"
#include "base/memory.h"

#define LOCK_FILE   "mgpud.lock" // mgpud uses the same files, and takes the same lock
#define LINK_SOCKET "link.sock"
#define LOG_FILE    "mgpu-agent.log"

static int refuse_second(const char *directory, struct error *err)
{
    (void)error_set(err, -EBUSY, "mgpud or another mgpu-agent is already running with %s", directory);
    return error_hint(err, "the machine of mgpud is already a node; for a second node on one machine, use "
                           "--state-dir and --run-dir");
}

static int lock_directory(const char *directory, int *ret_fd, struct error *err)
{
    int r = make_directories(directory, 0755);
    if (r < 0)
        return error_set_errno(err, r, "cannot create the directory %s", directory);
    _cleanup_free_ char *path = xasprintf("%s/" LOCK_FILE, directory);
    _cleanup_close_ int fd = -1;
    r = lock_path(path, &fd);
    if (r == -EAGAIN)
        return refuse_second(directory, err);
    if (r < 0)
        return error_set_errno(err, r, "cannot lock %s", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Lock files can be removed; this directory is in use as long as there is state. */
static int lock_node(const char *state_dir, int *ret_fd, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/node", state_dir);
    int r = make_directories(path, 0700);
    if (r == 0)
        r = lock_private_directory(path, ret_fd);
    if (r == -EAGAIN)
        return refuse_second(state_dir, err);
    return r < 0 ? error_set_errno(err, r, "cannot lock %s", path) : 0;
}

static int claim_gpus(const struct agent_options *options, struct gpu_claims *ret, struct error *err)
{
    if (options->gpus.kind == GPU_SPEC_NONE || options->gpus.kind == GPU_SPEC_SIM)
        return 0;
    gpu_claims_take(options->device_dir != NULL ? options->device_dir : "/dev", ret);
    return gpu_claims_refuse(ret, options->gpus.kind != GPU_SPEC_AUTO, err);
}

static int listen_for_streams(const char *run_dir, int *ret_fd, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/" LINK_SOCKET, run_dir);
    return listen_unix(path, 0600, ret_fd, err);
}

int uplink_dirs_open(const struct agent_options *options, struct uplink_dirs *ret, struct error *err)
{
    if (options->is_detached) {
        int r = make_directories(options->state_dir, 0755);
        if (r < 0)
            return error_set_errno(err, r, "cannot create the directory %s", options->state_dir);
        _cleanup_free_ char *log_path = xasprintf("%s/" LOG_FILE, options->state_dir);
        r = detach_start(log_path, &ret->detached, err);
        if (r < 0)
            return r;
    }
    int r = lock_directory(options->run_dir, &ret->lock_fds[0], err);
    if (r == 0)
        r = lock_directory(options->state_dir, &ret->lock_fds[1], err);
    if (r == 0)
        r = lock_node(options->state_dir, &ret->lock_fds[2], err);
    if (r == 0)
        r = claim_gpus(options, &ret->claims, err);
    return r < 0 ? r : listen_for_streams(options->run_dir, &ret->stream_fd, err);
}

void uplink_dirs_close(struct uplink_dirs *dirs)
{
    closep(&dirs->lock_fds[0]);
    closep(&dirs->lock_fds[1]);
    closep(&dirs->lock_fds[2]);
    gpu_claims_clear(&dirs->claims);
    closep(&dirs->stream_fd);
    closep(&dirs->detached.log_fd);
}

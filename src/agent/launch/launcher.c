/* SPDX-License-Identifier: MIT */
/*
 * Writes spool directories and starts shepherds. All files are accessed through descriptors of directories
 * that only root (or the rootless user) can change: no path controlled by a job's owner is opened here.
 */
#include "agent/launch/launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/host/exit_copies.h"
#include "agent/host/hostfile.h"
#include "agent/host/notices.h"
#include "agent/host/spawn.h"
#include "agent/launch/fork_client.h"
#include "agent/launch/launcher_private.h"
#include "agent/launch/scripts.h"
#include "base/descriptors.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/launch.h"
#include "job/start_failure.h"

#define SPOOL_DIR         "spool"
#define OPEN_FILES_WANTED (NODE_ATTEMPTS_MAX + 4096U) // one for each shepherd, and some for other purposes

/* The shepherd's whole environment. */
static char *const shepherd_environment[] = { (char[]){ "PATH=/usr/sbin:/usr/bin:/sbin:/bin" }, NULL };

/* --- open and close --- */

static int open_directory(const char *path, mode_t mode, struct error *err)
{
    int r = make_directories(path, mode);
    int fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, r < 0 ? r : -errno, "cannot create directory %s", path);
    return fd;
}

static int open_below(const char *dir, const char *name, mode_t mode, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
    return open_directory(path, mode, err);
}

void launcher_close(struct launcher *launcher)
{
    if (launcher == NULL)
        return;
    fork_client_close(launcher->forks);
    for (size_t i = 0; i < LAUNCHER_PREPARED_MAX; i++)
        buffer_clear(&launcher->prepared[i].description);
    closep(&launcher->spool_fd);
    closep(&launcher->exits_fd);
    closep(&launcher->scripts_fd);
    closep(&launcher->notify_fd);
    free(launcher->run_dir);
    free(launcher->state_dir);
    free(launcher->log_dir);
    free(launcher->exit_dir);
    free(launcher->shepherd);
    free(launcher->node);
    free(launcher);
}

static void launcher_closep(struct launcher **launcher)
{
    launcher_close(*launcher);
}

static int open_directories(struct launcher *launcher, struct error *err)
{
    /* Users can traverse the shared directories, and see only their own entries. */
    mode_t shared_mode = launcher->users.is_root ? 0711 : 0700;
    _cleanup_close_ int state_fd = open_directory(launcher->state_dir, shared_mode, err);
    if (state_fd < 0)
        return state_fd;
    launcher->spool_fd = open_below(launcher->run_dir, SPOOL_DIR, 0700, err);
    if (launcher->spool_fd < 0)
        return launcher->spool_fd;
    launcher->scripts_fd = scripts_open(launcher->run_dir, shared_mode, err);
    if (launcher->scripts_fd < 0)
        return launcher->scripts_fd;
    _cleanup_close_ int pipes_fd = open_below(launcher->run_dir, SPOOL_PIPES_DIR, shared_mode, err);
    if (pipes_fd < 0)
        return pipes_fd;
    launcher->exits_fd = open_directory(launcher->exit_dir, 0700, err);
    if (launcher->exits_fd < 0)
        return launcher->exits_fd;
    _cleanup_close_ int logs_fd = open_below(launcher->state_dir, LOG_DIR, shared_mode, err);
    return logs_fd < 0 ? logs_fd : 0;
}

int launcher_open(const struct launcher_options *options, const struct confine *confine,
    struct confine_state *cells, struct launcher **ret, struct error *err)
{
    _cleanup_(launcher_closep) struct launcher *launcher = xcalloc(1, sizeof(*launcher));
    *launcher = (struct launcher){
        .run_dir = xstrdup(options->run_dir),
        .state_dir = xstrdup(options->state_dir),
        .exit_dir = xasprintf("%s/" LAUNCHER_EXIT_DIR, options->state_dir),
        .shepherd = xstrdup(options->shepherd),
        .node = xstrdup(options->users.node),
        .has_joined = options->has_joined,
        .users = options->users,
        .nofile_soft =
            options->nofile_soft != 0 ? options->nofile_soft : descriptors_allow(OPEN_FILES_WANTED),
        .nofile_hard = options->nofile_hard,
        .limits = options->limits,
        .pids_max = options->pids_max,
        .has_no_new_privs = options->has_no_new_privs,
        .devices = options->devices,
        .is_guarding = options->is_guarding,
        .private_tmp_err = options->private_tmp_err,
        .shares = options->shares,
        .confine = confine,
        .cells = cells,
        .spool_fd = -1,
        .exits_fd = -1,
        .scripts_fd = -1,
        .notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
    };
    launcher->users.node = launcher->node;
    if (options->log_dir != NULL)
        launcher->log_dir = xstrdup(options->log_dir);
    else
        launcher->log_dir =
            options->users.is_root ? xstrdup("home") : xasprintf("%s/" LOG_DIR, options->state_dir);
    if (access(options->shepherd, X_OK) < 0)
        return error_set_errno(err, -errno, "cannot execute the shepherd %s", options->shepherd);
    int r = open_directories(launcher, err);
    if (r < 0)
        return r;
    *ret = take_ptr(launcher);
    return 0;
}

void launcher_set_gpus(struct launcher *launcher, const struct record_list *gpus)
{
    launcher->gpus = gpus;
}

void launcher_set_resolver(struct launcher *launcher, struct user_resolver *resolver)
{
    launcher->resolver = resolver;
}

void launcher_forget_users(struct launcher *launcher)
{
    if (launcher->resolver != NULL)
        user_resolver_forget(launcher->resolver);
}

void launcher_set_mps(struct launcher *launcher, struct mps *mps)
{
    launcher->mps = mps;
}

int launcher_spool_fd(const struct launcher *launcher)
{
    return launcher->spool_fd;
}

int launcher_open_entry(const struct launcher *launcher, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    int fd = openat(launcher->spool_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int launcher_guard(const struct launcher *launcher, const struct spool_id *id, struct error *err)
{
    struct launch_spec spec;
    struct error why = { 0 };
    _cleanup_close_ int fd = launcher_open_entry(launcher, id);
    int r = fd < 0 ? fd : file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, &why);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the spec of job %llu", (unsigned long long)id->job);
    if (launcher->is_guarding && spec.devices.count == 0)
        r = error_set(err, -ENODATA, "it was prepared before devices were confined");
    else
        r = launcher->confine->guard(launcher->cells, id, &spec, err);
    record_clear(&launch_spec_record, &spec);
    return r;
}

int launcher_limit_step(
    struct launcher *launcher, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    return launcher->confine->limit_step(launcher->cells, id, spec, err);
}

/* --- processes --- */

/* The cgroup was recreated after the spec was written, so it has no limits yet, and its v1 groups may be
 * different. */
static int limit_again(const struct launcher *launcher, const struct spool_id *id, struct error *err)
{
    struct launch_spec spec;
    _cleanup_close_ int fd = launcher_open_entry(launcher, id);
    int r = fd < 0 ? fd : file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, NULL);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the spec of job %llu", (unsigned long long)id->job);
    r = launcher->confine->limit(launcher->cells, id, &spec, err);
    if (r == 0) {
        r = file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, false);
        if (r < 0)
            (void)error_set_errno(err, r, "cannot write the spool of job %llu", (unsigned long long)id->job);
    }
    record_clear(&launch_spec_record, &spec);
    return r;
}

/* The cgroup may be new, or created by an earlier agent. Steps to be adopted are already running. */
static int check_cell(struct launcher *launcher, const struct spool_id *id, struct error *err)
{
    bool is_new = !launcher->confine->is_limited(launcher->cells, id);
    bool is_guarded = !is_new && spool_id_equal(&launcher->guarded, id);
    launcher->guarded = (struct spool_id){ 0 };
    int r = is_new ? limit_again(launcher, id, err) : 0;
    return r == 0 && !is_guarded ? launcher_guard(launcher, id, err) : r;
}

static int start(struct launcher *launcher, const struct spool_id *id, bool is_adopter,
    struct launcher_process *ret, struct error *err)
{
    char name[SPOOL_NAME_SIZE];
    char program[] = "mgpu-shepherd", adopt[] = "--adopt";
    int shepherd_fd = -1;
    _cleanup_free_ char *job_cgroup = NULL;
    spool_name(id, name);
    _cleanup_free_ char *dir = xasprintf("%s/" SPOOL_DIR "/%s", launcher->run_dir, name);
    int r = launcher->confine->prepare(launcher->cells, id, &job_cgroup, &shepherd_fd, err);
    if (r == 0 && !is_adopter)
        r = check_cell(launcher, id, err);
    if (r < 0)
        return error_mark(err, START_CGROUP, r);
    char *argv[] = { program, is_adopter ? adopt : dir, is_adopter ? dir : NULL, NULL };
    if (launcher->forks == NULL)
        launcher->forks = fork_client_open(launcher->shepherd);
    r = launcher->forks == NULL
            ? -EPIPE
            : fork_client_start(launcher->forks, dir, is_adopter, shepherd_fd, &ret->pid, &ret->end_fd);
    if (r == -EPIPE) {
        /* If it created a shepherd before it died, that one holds the lock, and the second exits. */
        fork_client_close(take_ptr(launcher->forks));
        r = spawn_program(
            launcher->shepherd, argv, shepherd_environment, shepherd_fd, &ret->pid, &ret->end_fd);
    }
    if (r >= 0)
        return 0;
    bool is_short = r == -EAGAIN || r == -ENOMEM || r == -EMFILE || r == -ENFILE;
    return error_mark(err, is_short ? START_PROCESS : START_SHEPHERD,
        error_set_errno(err, r, "cannot start %s", launcher->shepherd));
}

int launcher_start(
    struct launcher *launcher, const struct spool_id *id, struct launcher_process *ret, struct error *err)
{
    return start(launcher, id, false, ret, err);
}

int launcher_adopt(
    struct launcher *launcher, const struct spool_id *id, struct launcher_process *ret, struct error *err)
{
    return start(launcher, id, true, ret, err);
}

void launcher_note_end(struct launcher *launcher, pid_t pid)
{
    if (launcher->forks != NULL)
        fork_client_note_end(launcher->forks, pid);
}

static int send_command(
    const struct launcher *launcher, const struct spool_id *id, const struct spool_command *command)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    /* By descriptor, because the path of a run directory may be too long for a socket address. */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s/" SPOOL_CTL,
        launcher->spool_fd, name);
    ssize_t n = sendto(launcher->notify_fd, command, sizeof(*command), MSG_NOSIGNAL,
        (const struct sockaddr *)&address, sizeof(address));
    return n < 0 ? -errno : 0;
}

int launcher_command(struct launcher *launcher, const struct spool_id *id, uint32_t signal, int64_t grace_ms)
{
    bool is_checkpoint = (signal & STOP_CHECKPOINT) != 0;
    struct spool_command command = { .magic = is_checkpoint ? SPOOL_CHECKPOINT_MAGIC : SPOOL_COMMAND_MAGIC,
        .signal = SIGNAL_NUMBER_OF(signal),
        .grace_ms = grace_ms,
        .scope = SIGNAL_SCOPE_OF(signal) };
    return send_command(launcher, id, &command);
}

int launcher_release(struct launcher *launcher, const struct spool_id *id, uint32_t port)
{
    struct spool_command go = { .magic = SPOOL_GO_MAGIC, .grace_ms = -1, .port = port };
    return send_command(launcher, id, &go);
}

int launcher_update(
    struct launcher *launcher, const struct spool_id *id, const struct spool_terms *terms, struct error *err)
{
    _cleanup_close_ int fd = launcher_open_entry(launcher, id);
    int r = fd < 0 ? fd : file_write(fd, SPOOL_TERMS, terms, sizeof(*terms), false);
    if (r < 0)
        return error_set_errno(err, r, "its new limits cannot be written to the spool");
    struct spool_command look = { .magic = SPOOL_LOOK_MAGIC, .grace_ms = -1 };
    (void)send_command(launcher, id, &look); // no shepherd is listening: an adopting one reads the file
    return 0;
}

/* --- the end --- */

int launcher_discard(struct launcher *launcher, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    launcher_forget_prepared(launcher, id);
    int r = launcher->confine->remove(launcher->cells, id);
    if (r == 0)
        r = exit_copy_remove(launcher->exits_fd, id);
    if (r < 0)
        return r;
    if (launcher->resolver != NULL)
        user_resolver_drop(launcher->resolver, id);
    if (launcher->mps != NULL)
        mps_drop(launcher->mps, id);
    (void)hostfile_remove(launcher->run_dir, id);
    (void)notices_remove(launcher->run_dir, id);
    (void)scripts_remove(launcher->scripts_fd, id); // files that a user has added to the directory are kept
    return spool_remove_and_notify(launcher->spool_fd, name, launcher->notify_fd);
}

/* Visits the names in a directory of RUN that belong to no entry. */
static void sweep_folder(const struct launcher *launcher, int folder_fd,
    void (*remove)(const struct launcher *launcher, const struct spool_id *id))
{
    struct spool_id id;
    DIR *dir = folder_fd < 0 ? NULL : fdopendir(folder_fd);
    if (dir == NULL) {
        if (folder_fd >= 0)
            (void)close(folder_fd);
        return;
    }
    for (const struct dirent *file; (file = readdir(dir)) != NULL;) {
        if (spool_parse_name(file->d_name, &id) &&
            faccessat(launcher->spool_fd, file->d_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            remove(launcher, &id);
    }
    (void)closedir(dir);
}

static int open_folder(const struct launcher *launcher, const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", launcher->run_dir, name);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void remove_script(const struct launcher *launcher, const struct spool_id *id)
{
    (void)scripts_remove(launcher->scripts_fd, id);
}

static void remove_hosts(const struct launcher *launcher, const struct spool_id *id)
{
    (void)hostfile_remove(launcher->run_dir, id);
}

static void remove_notices(const struct launcher *launcher, const struct spool_id *id)
{
    (void)notices_remove(launcher->run_dir, id);
}

void launcher_sweep(const struct launcher *launcher)
{
    sweep_folder(launcher, open_folder(launcher, SCRIPTS_DIR), remove_script);
    sweep_folder(launcher, open_folder(launcher, HOSTS_DIR), remove_hosts);
    sweep_folder(launcher, open_folder(launcher, NOTICES_DIR), remove_notices);
}

int launcher_restore_one(struct launcher *launcher, const struct spool_id *id, struct error *err)
{
    return exit_copy_restore(launcher->exits_fd, launcher->spool_fd, id, err);
}

int launcher_restore(struct launcher *launcher, struct error *err)
{
    int r = exit_copies_restore(launcher->exits_fd, launcher->spool_fd, err);
    return r < 0 ? error_wrap(err, "%s", launcher->exit_dir) : 0;
}

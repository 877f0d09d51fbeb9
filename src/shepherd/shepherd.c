/* SPDX-License-Identifier: MIT */
/* Shared by launching and adopting shepherds: both open and close the same resources, and protect themselves
 * in the same way. */
#include "shepherd/shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "shepherd/record.h"

#define HINT_SECONDS 1 // time for a slow agent to accept a hint

/*
 * Signals ignored by a parent stay ignored through execve, so they are reset: the job starts with the
 * defaults. Uses the system call, because the C library reserves 32 and 33 and refuses to change them,
 * although a parent may have ignored them. The kernel's struct sigaction is at most 32 bytes on all supported
 * machines, and all zero means SIG_DFL, no flags, no mask.
 */
static void reset_signals(void)
{
    static const uint64_t default_action[8];
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        (void)syscall(SYS_rt_sigaction, signal_number, default_action, NULL, (size_t)(NSIG / 8));
}

void shepherd_protect(void)
{
    (void)umask(077);
    reset_signals();
    if (geteuid() != 0)
        return;
    _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)write_all(fd, "-1000", 5);
}

/* From here on, the standard descriptors refer to /dev/null, for us and, as stdin, for the job. In a kept
 * shepherd they have done so since its first step. */
static int close_standard(void)
{
    static bool is_done;
    if (is_done)
        return 0;
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0)
        return -errno;
    for (int standard = 0; standard <= STDERR_FILENO; standard++)
        if (fd != standard && dup2(fd, standard) < 0)
            return -errno;
    if (fd > STDERR_FILENO)
        (void)close(fd);
    is_done = true;
    return 0;
}

int shepherd_open(struct shepherd *shepherd, const char *spool_dir, bool wait, struct error *err)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); // orphans of a step become our children
    const char *slash = strrchr(spool_dir, '/');
    *shepherd = (struct shepherd){ .spool_fd = -1,
        .lock_fd = -1,
        .agent_fd = -1,
        .ctl_fd = -1,
        .status_fd = -1,
        .exit_fd = -1,
        .exit_copy_fd = -1,
        .cgroup_fd = -1,
        .channel_fd = -1,
        .init_pidfd = -1,
        .host_pidfd = -1,
        .log_fd = -1,
        .node_oom_kills = -1 };
    terminal_init(&shepherd->terminal);
    status_pipe_init(&shepherd->status_pipe);
    meeting_init(&shepherd->meeting);
    if (!spool_parse_name(slash != NULL ? slash + 1 : spool_dir, &shepherd->id))
        return error_set(err, -EINVAL, "%s is not the name of a spool directory", spool_dir);
    spool_name(&shepherd->id, shepherd->name);
    shepherd->spool_fd = open(spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (shepherd->spool_fd < 0 || fchdir(shepherd->spool_fd) < 0)
        return error_set_errno(err, -errno, "cannot open spool directory %s", spool_dir);
    shepherd->lock_fd =
        openat(shepherd->spool_fd, SPOOL_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (shepherd->lock_fd < 0)
        return error_set_errno(err, -errno, "cannot open the lock in %s", spool_dir);
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int r = wait ? (fcntl(shepherd->lock_fd, F_OFD_SETLKW, &lock) < 0 ? -errno : 0)
                 : lock_file(shepherd->lock_fd);
    if (r < 0)
        return error_set_errno(err, r, "cannot lock %s", spool_dir);
    r = file_read_record(shepherd->spool_fd, SPOOL_SPEC, &launch_spec_record, &shepherd->spec, err);
    if (r < 0)
        return error_wrap(err, "%s", spool_dir);
    const struct launch_spec *spec = &shepherd->spec;
    if (spec->id.job != shepherd->id.job || spec->id.attempt != shepherd->id.attempt ||
        spec->id.step != shepherd->id.step || spec->id.rank != shepherd->id.rank ||
        spec->command.count == 0 || spec->cwd == NULL || spec->output == NULL ||
        (spec->setup != NULL && spec->shell == NULL))
        return error_set(
            err, -EBADMSG, "%s contains the spec of another step, or an incomplete one", spool_dir);
    return 0;
}

static int bind_ctl(struct shepherd *shepherd)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SPOOL_CTL };
    struct timeval timeout = { .tv_sec = HINT_SECONDS };
    (void)unlinkat(shepherd->spool_fd, SPOOL_CTL, 0);
    shepherd->ctl_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (shepherd->ctl_fd < 0 ||
        bind(shepherd->ctl_fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return setsockopt(shepherd->ctl_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ? -errno : 0;
}

int shepherd_prepare(struct shepherd *shepherd, struct error *err)
{
    const struct launch_spec *spec = &shepherd->spec;
    int r = bind_ctl(shepherd);
    if (r < 0)
        return error_set_errno(err, r, "cannot bind the control socket of %s", shepherd->name);
    r = record_reserve(shepherd);
    if (r < 0)
        return error_set_errno(err, r, "cannot reserve space for the exit record of %s", shepherd->name);
    if (spec->exit_copy_dir != NULL)
        shepherd->exit_copy_fd = open(spec->exit_copy_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (spec->job_cgroup != NULL)
        shepherd->cgroup_fd = open(spec->job_cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (spec->job_cgroup != NULL && shepherd->cgroup_fd < 0)
        return error_set_errno(err, -errno, "cannot open cgroup %s", spec->job_cgroup);
    r = close_standard();
    return r < 0 ? error_set_errno(err, r, "cannot open /dev/null") : 0;
}

void shepherd_hint(const struct shepherd *shepherd, const char *word)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "../" SPOOL_HINTS };
    char text[SPOOL_NAME_SIZE + 16];
    int n = snprintf(text, sizeof(text), "%s %s", shepherd->name, word);
    /* Only a hint: an agent that is not running finds the files when it starts. */
    (void)sendto(
        shepherd->ctl_fd, text, (size_t)n, MSG_NOSIGNAL, (const struct sockaddr *)&address, sizeof(address));
}

void shepherd_drop(const struct shepherd *shepherd)
{
    const int fds[] = { shepherd->lock_fd, shepherd->agent_fd, shepherd->channel_fd, shepherd->ctl_fd,
        shepherd->exit_fd, shepherd->exit_copy_fd, shepherd->cgroup_fd, shepherd->spool_fd,
        shepherd->status_pipe.file_fd };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    terminal_drop(&shepherd->terminal);
}

void shepherd_close(struct shepherd *shepherd)
{
    int *fds[] = { &shepherd->ctl_fd, &shepherd->status_fd, &shepherd->exit_fd, &shepherd->exit_copy_fd,
        &shepherd->cgroup_fd, &shepherd->channel_fd, &shepherd->init_pidfd, &shepherd->host_pidfd,
        &shepherd->log_fd, &shepherd->lock_fd, &shepherd->spool_fd };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        closep(fds[i]);
    terminal_close(&shepherd->terminal);
    status_pipe_close(&shepherd->status_pipe);
    meeting_close(&shepherd->meeting);
    record_clear(&launch_spec_record, &shepherd->spec);
    buffer_clear(&shepherd->record);
    free(shepherd->log_path);
    free(shepherd->start_text);
}

int shepherd_complain(const struct error *err)
{
    (void)fprintf(stderr, "mgpu-shepherd: %s\n", err->message);
    return SHEPHERD_UNUSABLE;
}

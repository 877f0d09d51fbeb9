/* SPDX-License-Identifier: MIT */
/*
 * The end of the command, and processes that it left running. In a stop, these have the rest of the grace
 * period. Otherwise they have LAST_MS, for those about to exit, and those that remain are named in the exit
 * record. Without a cgroup only the init can find them, so it stays until they have ended (rest.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "shepherd/rest.h"
#include "shepherd/watch_private.h"

#define LAST_MS REST_MS

static bool is_populated(const struct watch *watch)
{
    char text[128];
    ssize_t n = pread(watch->events_fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        return false; // the cgroup is gone
    text[n] = '\0';
    return strstr(text, "populated 1") != NULL;
}

static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* --- the end of the command --- */

static void read_status(struct watch *watch)
{
    struct init_status status;
    if (init_read_status(watch->shepherd->status_fd, &status) == 0)
        watch->ending->status = status;
    else
        watch->ending->status.phase = INIT_EXECUTING; // incomplete: the command may have run
    init_read_left(watch->shepherd->status_fd, &watch->ending->left);
}

static void leave_command(struct watch *watch)
{
    watch->phase = WATCH_REST;
    reap();
    if (watch->events_fd < 0 || watch->stage >= STOP_KILLED || !is_populated(watch))
        return;
    watch->phase = WATCH_LAST;
    if (watch->stage == STOP_NONE)
        watch_arm(watch, LAST_MS);
}

void watch_on_init_gone(struct watch *watch)
{
    struct shepherd *shepherd = watch->shepherd;
    struct init_status *status = &watch->ending->status;
    if (!shepherd->is_adopting) {
        siginfo_t ended;
        (void)waitid(P_PIDFD, (id_t)shepherd->init_pidfd, &ended, WEXITED);
    }
    closep(&shepherd->init_pidfd);
    read_status(watch);
    watch->phase = WATCH_REST;
    watch->is_executed = true;
    bool is_orphaned = status->phase == INIT_EXECUTING && status->leader_pid != 0;
    watch->leader_pidfd = is_orphaned ? process_open((pid_t)status->leader_pid, status->leader_start) : -1;
    if (watch->leader_pidfd < 0) {
        leave_command(watch);
        return;
    }
    watch->phase = WATCH_LEADER;
    if (watch->stage >= STOP_KILLED)
        (void)watch_signal(watch, SIGKILL);
}

/* The orphaned command ended; as the next subreaper we may have become its parent. */
void watch_on_leader_gone(struct watch *watch)
{
    struct init_status *status = &watch->ending->status;
    struct rusage usage;
    int wait_status;
    if (!watch->shepherd->is_adopting &&
        wait4((pid_t)status->leader_pid, &wait_status, 0, &usage) == (pid_t)status->leader_pid) {
        status->phase = INIT_ENDED;
        status->wait_status = wait_status;
        status->cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                         (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
        status->max_rss = (uint64_t)usage.ru_maxrss * 1024;
    }
    status->ended_wall_ms = clock_wall_ms();
    status->ended_boot_ms = clock_boot_ms();
    closep(&watch->leader_pidfd);
    leave_command(watch);
}

/* --- what is left --- */

void watch_end_last(struct watch *watch)
{
    bool is_stop = watch->stage != STOP_NONE;
    if (!is_stop || watch->ending->grace_ms > 0)
        watch_list(watch, is_stop ? &watch->ending->killed : &watch->ending->left);
    watch->stage = is_stop ? STOP_KILLED : STOP_NONE;
    watch->ending->is_killed |= is_stop;
    watch->phase = WATCH_REST;
}

void watch_check_last(struct watch *watch)
{
    reap();
    if (watch->stage != STOP_NONE) {
        /* The step holds the GPUs until its last process has ended. */
        watch->ending->status.ended_wall_ms = clock_wall_ms();
        watch->ending->status.ended_boot_ms = clock_boot_ms();
        watch->ending->is_outlived = true;
    }
    if (!is_populated(watch) || watch->stage >= STOP_KILLED)
        watch->phase = WATCH_REST;
}

/* With a cgroup, one write kills everything, including steps with their own cgroup. Without one, each
 * round kills the existing processes and reaps one. */
void watch_end_rest(struct watch *watch)
{
    const struct shepherd *shepherd = watch->shepherd;
    if (watch->events_fd < 0) {
        while (!shepherd->is_adopting) {
            (void)watch_signal(watch, SIGKILL);
            if (waitpid(-1, NULL, 0) < 0 && errno != EINTR)
                break;
        }
        watch->phase = WATCH_OVER;
        return;
    }
    reap();
    if (!is_populated(watch)) {
        watch->phase = WATCH_OVER;
        return;
    }
    _cleanup_close_ int fd = openat(shepherd->cgroup_fd, "../cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1", 1) != 1)
        (void)watch_signal(watch, SIGKILL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The shepherd's states after the gate:
 *
 *   INIT ──init ended, status written──────────────> LAST ──its time is up, or────> REST ──all ended──> OVER
 *     └───init killed, command alive──> LEADER ──ended──^      nothing is left
 *
 * INIT    the user's init is alive; its end is the end of the command
 * LEADER  init was killed: the command continues and is reaped here (not when adopting)
 * LAST    the command has ended; processes it left running have the rest of a stop's grace, or a moment
 * REST    remaining processes are being killed
 *
 * At its time limit the step is stopped as by a command of the agent (watch_stop.c).
 */
#include "shepherd/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "shepherd/stopping.h"
#include "shepherd/watch_private.h"

/* --- standing still, and the time limit --- */

/* A process that forks while the others are being stopped has a child that the first round missed. */
#define SUSPEND_ROUNDS 3

static void apply_suspension(struct watch *watch)
{
    bool is_wanted = watch->terms.is_suspended;
    if (watch->is_suspended == is_wanted || !watch->is_executed || watch->phase >= WATCH_LAST ||
        watch->stage != STOP_NONE)
        return;
    watch->is_suspended = is_wanted;
    for (int i = 0; i < (is_wanted ? SUSPEND_ROUNDS : 1); i++)
        (void)watch_signal(watch, is_wanted ? SIGSTOP : SIGCONT);
    terminal_idle_hold(&watch->idle, is_wanted);
}

/* The start reported by I, for the job's time limit. Until I reports, which may take long on a busy machine,
 * no time has passed for the job. */
static int64_t started_ms(const struct shepherd *shepherd)
{
    struct init_status status;
    bool has_started = init_read_status(shepherd->status_fd, &status) == 0 && status.started_boot_ms != 0;
    return has_started ? status.started_boot_ms : clock_boot_ms();
}

/* I reports that the command runs, or has died without a report. */
static void on_executed(struct watch *watch)
{
    char word;
    if (recv(watch->shepherd->channel_fd, &word, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    watch->is_executed = true;
    watch->terms.started_ms = started_ms(watch->shepherd);
    watch_obey_kept(watch);
    apply_suspension(watch);
}

static void keep_limit(struct watch *watch)
{
    if (watch->phase >= WATCH_LAST || watch->stage != STOP_NONE) {
        terms_close(&watch->terms);
        return;
    }
    if (!watch->is_executed)
        on_executed(watch);
    if (!watch->is_executed) // the command may hang in its exec: its time starts anyway
        watch->terms.started_ms = started_ms(watch->shepherd);
    const struct launch_spec *spec = watch->terms.spec;
    enum terms_due due = terms_next(&watch->terms);
    if (due == DUE_WARNING && spec->is_requeued_at_limit)
        watch_await_checkpoint(watch, SAVE_AT_LIMIT);
    if (due == DUE_WARNING && watch->is_executed)
        watch_warn(watch);
    if (due != DUE_END)
        return;
    watch->ending->stop_end = END_TIME_LIMIT;
    if (spec->is_requeued_at_limit)
        watch_stop_when_saved(watch, spec->grace_ms, SAVE_AT_LIMIT);
    else
        watch_obey(watch, &(struct spool_command){ .signal = SIGTERM, .grace_ms = spec->grace_ms });
}

static void keep_idle(struct watch *watch)
{
    if (watch->phase >= WATCH_LAST || watch->stage != STOP_NONE) {
        terminal_idle_close(&watch->idle);
        return;
    }
    if (!terminal_idle_is_over(&watch->idle))
        return;
    if (!watch->is_executed)
        on_executed(watch);
    if (watch->ending->stop_end == END_NONE)
        watch->ending->stop_end = END_IDLE_TIMEOUT;
    watch_obey(watch, &(struct spool_command){ .signal = SIGHUP, .grace_ms = watch->terms.spec->grace_ms });
}

/* Done in any state. */
static void keep_lease(struct watch *watch)
{
    if (watch->phase == WATCH_REST || !node_lease_is_over(&watch->lease, watch->shepherd))
        return;
    if (!watch->is_executed)
        on_executed(watch);
    if (watch->stage == STOP_NONE)
        watch->ending->stop_end = END_NODE_LOST;
    watch_obey(
        watch, &(struct spool_command){ .signal = SIGTERM, .grace_ms = node_lease_left_ms(&watch->lease) });
}

static void on_terms(struct watch *watch)
{
    int64_t limit_ms = watch->terms.limit_ms;
    terms_read(&watch->terms, watch->shepherd->spool_fd);
    if (limit_ms != watch->terms.limit_ms) {
        if (status_pipe_save(&watch->shepherd->status_pipe) == SAVE_AT_LIMIT && watch->stage == STOP_NONE)
            status_pipe_ask_save(
                &watch->shepherd->status_pipe, SAVE_UNASKED); // that was for the previous limit
        keep_limit(watch);
    }
    apply_suspension(watch);
}

static bool is_command(const struct spool_command *command, ssize_t length)
{
    return length == (ssize_t)sizeof(*command) && command->magic == SPOOL_COMMAND_MAGIC &&
           command->signal > 0 && command->signal < (uint32_t)NSIG;
}

static void on_command(struct watch *watch)
{
    struct spool_command command;
    ssize_t n = recv(watch->shepherd->ctl_fd, &command, sizeof(command), MSG_DONTWAIT | MSG_TRUNC);
    if (n == (ssize_t)sizeof(command) && command.magic == SPOOL_LOOK_MAGIC)
        on_terms(watch);
    else if (n == (ssize_t)sizeof(command) && command.magic == SPOOL_CHECKPOINT_MAGIC &&
             command.grace_ms >= 0)
        watch_stop_when_saved(watch, command.grace_ms, SAVE_AT_STOP);
    else if (is_command(&command, n))
        watch_obey(watch, &command);
}

/* An exec step's viewer has pressed Ctrl-C or left. If T itself was killed, its terminal is gone. */
static void on_terminal(struct watch *watch)
{
    struct terminal *terminal = &watch->shepherd->terminal;
    struct spool_command command;
    ssize_t n = recv(terminal->channel_fd, &command, sizeof(command), MSG_DONTWAIT | MSG_TRUNC);
    if (is_command(&command, n) && watch->shepherd->spec.is_exec_step)
        watch_obey(watch, &command);
    if (n != 0)
        return;
    closep(&terminal->channel_fd);
}

/*
 * The job's command has ended, so its exec steps end at once. In a stop, they have the rest of its grace
 * period: the signal was sent to them with the rest of the job, and shells on terminals, which ignore it, are
 * hung up. Without a cgroup, no process would wait for them. The processes may already have been killed with
 * the job.
 */
static void on_host_gone(struct watch *watch)
{
    const struct launch_spec *spec = &watch->shepherd->spec;
    int64_t until_ms = spec->job_cgroup != NULL ? stopping_read_host(watch->shepherd) : 0;
    int64_t left_ms = until_ms - clock_boot_ms();
    struct spool_command end = { .signal = SIGKILL };
    closep(&watch->shepherd->host_pidfd);
    if (!watch->is_executed)
        on_executed(watch);
    if (left_ms > 0) {
        end = (struct spool_command){ .signal = spec->is_tty ? SIGHUP : SIGTERM, .grace_ms = left_ms };
        watch->is_signalled = !spec->is_tty;
        watch->stop_signal = (int)end.signal;
    }
    watch_obey(watch, &end);
    if (watch->ending->stop_signal == 0)
        watch->ending->stop_signal = end.signal;
}

enum source {
    SOURCE_PROCESS,
    SOURCE_CTL,
    SOURCE_TIMER,
    SOURCE_CHANNEL,
    SOURCE_CGROUP,
    SOURCE_TERMINAL,
    SOURCE_HOST,
    SOURCE_LIMIT,
    SOURCE_IDLE,
    SOURCE_SAYING,
    SOURCE_LEASE,
    SOURCES,
};

/* For poll(2). */
static int wait_ms(const struct watch *watch, int64_t now_ms)
{
    int report_ms = status_pipe_wait_ms(&watch->shepherd->status_pipe, now_ms);
    int release_ms = watch_release_wait_ms(watch);
    if (watch->phase == WATCH_REST)
        return -1;
    return report_ms < 0 || (release_ms >= 0 && release_ms < report_ms) ? release_ms : report_ms;
}

static void turn(struct watch *watch)
{
    const struct shepherd *shepherd = watch->shepherd;
    int64_t now_ms = clock_boot_ms();
    bool is_rest = watch->phase == WATCH_REST, is_left = watch->phase >= WATCH_LAST;
    bool awaits_start = !watch->is_executed && (watch->waiting.signal != 0 || watch->terms.is_suspended);
    struct pollfd sources[SOURCES] = {
        [SOURCE_PROCESS] = { watch->phase == WATCH_INIT ? shepherd->init_pidfd : watch->leader_pidfd, POLLIN,
            0 },
        [SOURCE_CTL] = { shepherd->ctl_fd, POLLIN, 0 },
        [SOURCE_TIMER] = { watch->timer_fd, POLLIN, 0 },
        /* "executed" is worth waking up for only if a command waits for it. */
        [SOURCE_CHANNEL] = { awaits_start ? shepherd->channel_fd : -1, POLLIN, 0 },
        [SOURCE_LIMIT] = { is_rest ? -1 : watch->terms.timer_fd, POLLIN, 0 },
        [SOURCE_IDLE] = { is_rest ? -1 : watch->idle.timer_fd, POLLIN, 0 },
        [SOURCE_LEASE] = { is_rest ? -1 : watch->lease.timer_fd, POLLIN, 0 },
        [SOURCE_CGROUP] = { is_left ? watch->events_fd : -1, POLLPRI, 0 },
        [SOURCE_TERMINAL] = { shepherd->terminal.channel_fd, POLLIN, 0 },
        [SOURCE_HOST] = { shepherd->host_pidfd, POLLIN, 0 },
        [SOURCE_SAYING] = { is_rest ? -1 : status_pipe_source(&shepherd->status_pipe, now_ms), POLLIN, 0 },
    };
    if (poll(sources, SOURCES, wait_ms(watch, now_ms)) < 0)
        return;
    watch_release(watch);
    if (sources[SOURCE_CHANNEL].revents != 0)
        on_executed(watch);
    /* Checked first: an exec step is killed with its job, which then explains why its init is gone. */
    if (sources[SOURCE_HOST].revents != 0)
        on_host_gone(watch);
    if (sources[SOURCE_PROCESS].revents != 0) {
        if (watch->phase == WATCH_INIT)
            watch_on_init_gone(watch);
        else
            watch_on_leader_gone(watch);
        return;
    }
    if (sources[SOURCE_CTL].revents != 0) {
        if (!watch->is_executed)
            on_executed(watch);
        on_command(watch);
    }
    if (sources[SOURCE_TERMINAL].revents != 0) {
        if (!watch->is_executed)
            on_executed(watch);
        on_terminal(watch);
    }
    if (sources[SOURCE_TIMER].revents != 0)
        watch_on_timer(watch);
    if (sources[SOURCE_LIMIT].revents != 0)
        keep_limit(watch);
    if (sources[SOURCE_IDLE].revents != 0)
        keep_idle(watch);
    if (sources[SOURCE_SAYING].revents != 0)
        watch_on_status_pipe(watch);
    if (sources[SOURCE_LEASE].revents != 0)
        keep_lease(watch);
}

void watch_step(struct shepherd *shepherd, struct ending *ending)
{
    struct watch watch = {
        .shepherd = shepherd,
        .ending = ending,
        .leader_pidfd = -1,
        .events_fd = -1,
        .timer_fd = -1,
        .is_executed = shepherd->channel_fd < 0,
    };
    struct init_stop stop;
    if (shepherd->cgroup_fd >= 0)
        watch.events_fd = openat(shepherd->cgroup_fd, "../cgroup.events", O_RDONLY | O_CLOEXEC);
    terms_open(&watch.terms, shepherd, started_ms(shepherd));
    terminal_idle_open(&watch.idle, &shepherd->spec, shepherd->spool_fd);
    if (shepherd->is_adopting && stopping_read(shepherd, ending, &stop))
        watch_resume_stop(&watch, &stop);
    if (shepherd->init_pidfd < 0)
        watch_on_init_gone(&watch);
    else if (shepherd->spec.is_exec_step && shepherd->host_pidfd < 0)
        on_host_gone(&watch);
    if (shepherd->early.magic != 0)
        watch_obey(&watch, &shepherd->early);
    node_lease_open(&watch.lease, shepherd);
    keep_limit(&watch);
    keep_idle(&watch);
    keep_lease(&watch);
    apply_suspension(&watch);
    while (watch.phase != WATCH_OVER) {
        if (watch.phase == WATCH_LAST)
            watch_check_last(&watch);
        if (watch.phase == WATCH_REST)
            watch_end_rest(&watch);
        if (watch.phase != WATCH_OVER)
            turn(&watch);
    }
    watch_finish_status_pipe(&watch);
    terms_close(&watch.terms);
    terminal_idle_close(&watch.idle);
    node_lease_close(&watch.lease);
    closep(&watch.events_fd);
    closep(&watch.timer_fd);
    closep(&watch.leader_pidfd);
}

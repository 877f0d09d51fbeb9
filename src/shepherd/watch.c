/* SPDX-License-Identifier: MIT */
/*
 * The shepherd's states after the gate:
 *
 *   INIT ──init ended, status written──────────────────────────> REST ──cgroup empty, no children──> OVER
 *     └───init killed, command alive──> LEADER ──ended───────────^
 *
 * INIT    the user's init is alive; its end is the end of the command
 * LEADER  init was killed: the command continues and is reaped here (not when adopting)
 * REST    the command has ended; remaining processes are being killed
 *
 * A stop command goes through the stages of `stages`: its signal, after the grace period SIGKILL, and finally
 * the init itself. The init comes last because only it has the exit status of the command. At its time limit
 * the step is stopped as by a command of the agent.
 *
 * A stop may wait for the job to save its work: the job gets the signal it has chosen, and is killed as soon
 * as it reports CHECKPOINTED, or after the grace. A report from before the signal does not count. The warning
 * before a time limit that requeues the job also asks it to save its work.
 */
#include "shepherd/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "shepherd/node_lease.h"
#include "shepherd/stopping.h"
#include "shepherd/terminal_idle.h"
#include "shepherd/terms.h"
#include "shepherd/tree.h"

#define INIT_GRACE_MS 2000 // between SIGKILL for the command and SIGKILL for its init
#define GRACE_MS_MAX  (365LL * 24 * 3600 * 1000)

enum watch_phase { WATCH_INIT, WATCH_LEADER, WATCH_REST, WATCH_OVER };

enum stop_stage { STOP_NONE, STOP_SIGNALLED, STOP_KILLED, STOP_INIT_KILLED };

struct watch {
    struct shepherd *shepherd;
    struct ending *ending;
    enum watch_phase phase;
    enum stop_stage stage;
    int leader_pidfd;
    int events_fd;      // cgroup.events, or -1
    int timer_fd;       // the stop's next stage
    bool is_executed;   // reported by I: signals reach the command
    int waiting_signal; // came before that
    bool is_waiting_stop;
    bool is_suspended; // all processes were suspended
    bool is_stop_noted;
    struct terms terms;
    struct terminal_idle idle;
    struct node_lease lease;
};

static struct tree step_tree(const struct watch *watch)
{
    const struct shepherd *shepherd = watch->shepherd;
    bool has_init = watch->phase == WATCH_INIT;
    struct tree tree = { .cgroup_fd = shepherd->cgroup_fd, .cgroup = shepherd->spec.job_cgroup };
    tree.root = getpid();
    if (shepherd->is_adopting)
        tree.root = has_init ? shepherd->init_pid : (pid_t)watch->ending->status.leader_pid;
    tree.spare = has_init ? shepherd->init_pid : 0;
    tree.terminal = shepherd->terminal.pid;
    tree.is_contained = shepherd->spec.image.count > 0;
    return tree;
}

/* True if there was a process to signal. */
static bool signal_step(struct watch *watch, int signal)
{
    struct tree tree = step_tree(watch);
    int r = tree_signal(&tree, signal);
    /* The root of a tree is not in it. */
    if (watch->shepherd->is_adopting && watch->shepherd->cgroup_fd < 0 && watch->leader_pidfd >= 0)
        return process_signal(watch->leader_pidfd, signal) == 0 || r != 0;
    return r != 0;
}

/* Sends the signal before the time limit to its recipients. */
static void warn(struct watch *watch)
{
    const struct launch_spec *spec = &watch->shepherd->spec;
    struct tree tree = step_tree(watch);
    struct init_status status;
    if (spec->warn_scope == WARN_ALL || init_read_status(watch->shepherd->status_fd, &status) < 0) {
        (void)signal_step(watch, (int)spec->warn_signal);
    } else if (spec->warn_scope == WARN_OTHERS) {
        tree.command = (pid_t)status.leader_pid;
        (void)tree_signal(&tree, (int)spec->warn_signal);
    } else {
        _cleanup_close_ int pidfd = process_open((pid_t)status.leader_pid, status.leader_start);
        if (pidfd >= 0)
            (void)process_signal(pidfd, (int)spec->warn_signal);
    }
}

/* --- commands and their stages --- */

static void arm(struct watch *watch, int64_t after_ms)
{
    struct itimerspec when = { .it_value = {
                                   .tv_sec = after_ms / 1000, .tv_nsec = (after_ms % 1000) * 1000000 } };
    if (after_ms == 0)
        when.it_value.tv_nsec = 1; // zero would disarm it
    if (watch->timer_fd < 0)
        watch->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    (void)timerfd_settime(watch->timer_fd, 0, &when, NULL);
}

static int64_t armed_ms(const struct watch *watch)
{
    struct itimerspec left;
    if (watch->timer_fd < 0 || timerfd_gettime(watch->timer_fd, &left) < 0)
        return INT64_MAX;
    return left.it_value.tv_sec * 1000 + left.it_value.tv_nsec / 1000000;
}

static void deliver(struct watch *watch, int signal, bool is_stop)
{
    if (is_stop && !watch->is_stop_noted)
        stopping_note(watch->shepherd, watch->ending, signal);
    watch->is_stop_noted |= is_stop;
    bool is_delivered = signal_step(watch, signal);
    watch->ending->is_killed |= signal == SIGKILL;
    if (is_stop && is_delivered && watch->ending->stop_signal == 0)
        watch->ending->stop_signal = (uint32_t)signal;
    /* A stopped process would sleep through its last chance. */
    if (is_stop && signal != SIGKILL)
        (void)signal_step(watch, SIGCONT);
}

static void obey(struct watch *watch, const struct spool_command *command)
{
    bool is_stop = command->grace_ms >= 0;
    int signal = (int)command->signal;
    if (watch->phase == WATCH_REST)
        return;
    if (watch->is_executed) {
        deliver(watch, signal, is_stop);
    } else {
        watch->waiting_signal = signal;
        watch->is_waiting_stop = watch->is_waiting_stop || is_stop;
    }
    if (!is_stop || watch->stage >= STOP_KILLED)
        return;
    int64_t grace_ms = command->grace_ms < GRACE_MS_MAX ? command->grace_ms : GRACE_MS_MAX;
    if (watch->stage == STOP_NONE || grace_ms < armed_ms(watch))
        arm(watch, grace_ms);
    watch->stage = STOP_SIGNALLED;
}

/* --- a stop that waits for a checkpoint --- */

/* Its end is that of the stop, whatever the command makes of it: also when it was quicker than the signal. */
static void note_saved(struct watch *watch)
{
    struct ending *ending = watch->ending;
    if (status_pipe_save(&watch->shepherd->status_pipe) == SAVE_AT_LIMIT)
        ending->stop_end = END_TIME_LIMIT;
    if (ending->stop_signal == 0)
        ending->stop_signal = SIGKILL;
}

/* It has saved its work after being asked to. */
static void end_saved(struct watch *watch)
{
    if (watch->stage >= STOP_KILLED || watch->phase == WATCH_REST)
        return;
    note_saved(watch);
    obey(watch, &(struct spool_command){ .signal = SIGKILL });
}

/* Earlier reports do not count; a repeated stop does not change that. */
static void await_checkpoint(struct watch *watch, enum spool_save save)
{
    struct status_pipe *status_pipe = &watch->shepherd->status_pipe;
    bool is_saved = status_pipe_drain(status_pipe);
    if (is_saved && status_pipe_save(status_pipe) != SAVE_UNASKED)
        end_saved(watch);
    if (status_pipe_save(status_pipe) != SAVE_AT_STOP)
        status_pipe_ask_save(status_pipe, save);
}

static void stop_when_saved(struct watch *watch, int64_t grace_ms, enum spool_save save)
{
    uint32_t signal = watch->shepherd->spec.checkpoint_signal;
    await_checkpoint(watch, save);
    obey(watch,
        &(struct spool_command){ .signal = signal != 0 ? signal : (uint32_t)SIGTERM, .grace_ms = grace_ms });
}

static void on_status_pipe(struct watch *watch)
{
    struct status_pipe *status_pipe = &watch->shepherd->status_pipe;
    if (status_pipe_read(status_pipe, clock_boot_ms()) && status_pipe_save(status_pipe) != SAVE_UNASKED)
        end_saved(watch);
}

/* The last words may be read after the end. */
static void finish_status_pipe(struct watch *watch)
{
    struct status_pipe *status_pipe = &watch->shepherd->status_pipe;
    if (status_pipe_finish(status_pipe) && status_pipe_save(status_pipe) != SAVE_UNASKED)
        note_saved(watch);
}

/* --- standing still, and the time limit --- */

/* A process that forks while the others are stopped has a child that the first round missed. */
#define SUSPEND_ROUNDS 3

static void settle_suspension(struct watch *watch)
{
    bool is_wanted = watch->terms.is_suspended;
    if (watch->is_suspended == is_wanted || !watch->is_executed || watch->phase == WATCH_REST ||
        watch->stage != STOP_NONE)
        return;
    watch->is_suspended = is_wanted;
    for (int i = 0; i < (is_wanted ? SUSPEND_ROUNDS : 1); i++)
        (void)signal_step(watch, is_wanted ? SIGSTOP : SIGCONT);
    terminal_idle_hold(&watch->idle, is_wanted);
}

/* As reported by I, for the job's time limit. Before the report, which may take long on a busy machine, no
 * time has passed for the job. */
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
    if (watch->waiting_signal != 0)
        deliver(watch, watch->waiting_signal, watch->is_waiting_stop);
    watch->waiting_signal = 0;
    settle_suspension(watch);
}

static void keep_limit(struct watch *watch)
{
    if (watch->phase == WATCH_REST || watch->stage != STOP_NONE) {
        terms_close(&watch->terms);
        return;
    }
    if (!watch->is_executed)
        on_executed(watch);
    if (!watch->is_executed) // it may hang in its exec: its time runs from the start all the same
        watch->terms.started_ms = started_ms(watch->shepherd);
    const struct launch_spec *spec = watch->terms.spec;
    enum terms_due due = terms_next(&watch->terms);
    if (due == DUE_WARNING && spec->is_requeued_at_limit)
        await_checkpoint(watch, SAVE_AT_LIMIT);
    if (due == DUE_WARNING && watch->is_executed)
        warn(watch);
    if (due != DUE_END)
        return;
    watch->ending->stop_end = END_TIME_LIMIT;
    if (spec->is_requeued_at_limit)
        stop_when_saved(watch, spec->grace_ms, SAVE_AT_LIMIT);
    else
        obey(watch, &(struct spool_command){ .signal = SIGTERM, .grace_ms = spec->grace_ms });
}

static void keep_idle(struct watch *watch)
{
    if (watch->phase == WATCH_REST || watch->stage != STOP_NONE) {
        terminal_idle_close(&watch->idle);
        return;
    }
    if (!terminal_idle_is_over(&watch->idle))
        return;
    if (!watch->is_executed)
        on_executed(watch);
    if (watch->ending->stop_end == END_NONE)
        watch->ending->stop_end = END_IDLE_TIMEOUT;
    obey(watch, &(struct spool_command){ .signal = SIGHUP, .grace_ms = watch->terms.spec->grace_ms });
}

/* Whatever else is under way. */
static void keep_lease(struct watch *watch)
{
    if (watch->phase == WATCH_REST || !node_lease_is_over(&watch->lease, watch->shepherd))
        return;
    if (!watch->is_executed)
        on_executed(watch);
    if (watch->stage == STOP_NONE)
        watch->ending->stop_end = END_NODE_LOST;
    obey(watch, &(struct spool_command){ .signal = SIGTERM, .grace_ms = node_lease_left_ms(&watch->lease) });
}

static void on_terms(struct watch *watch)
{
    int64_t limit_ms = watch->terms.limit_ms;
    terms_read(&watch->terms, watch->shepherd->spool_fd);
    if (limit_ms != watch->terms.limit_ms) {
        if (status_pipe_save(&watch->shepherd->status_pipe) == SAVE_AT_LIMIT && watch->stage == STOP_NONE)
            status_pipe_ask_save(
                &watch->shepherd->status_pipe, SAVE_UNASKED); // that limit is another one now
        keep_limit(watch);
    }
    settle_suspension(watch);
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
        stop_when_saved(watch, command.grace_ms, SAVE_AT_STOP);
    else if (is_command(&command, n))
        obey(watch, &command);
}

/* An exec step's viewer has pressed Ctrl-C, or gone. T itself may have been killed: its terminal is gone
 * then. */
static void on_terminal(struct watch *watch)
{
    struct terminal *terminal = &watch->shepherd->terminal;
    struct spool_command command;
    ssize_t n = recv(terminal->channel_fd, &command, sizeof(command), MSG_DONTWAIT | MSG_TRUNC);
    if (is_command(&command, n) && watch->shepherd->spec.is_exec_step)
        obey(watch, &command);
    if (n != 0)
        return;
    closep(&terminal->channel_fd);
}

/* The job has ended: its exec steps end at once. The processes may already have been killed with the rest of
 * the job. */
static void on_host_gone(struct watch *watch)
{
    struct spool_command kill_it = { .signal = SIGKILL };
    closep(&watch->shepherd->host_pidfd);
    if (!watch->is_executed)
        on_executed(watch);
    obey(watch, &kill_it);
    if (watch->ending->stop_signal == 0)
        watch->ending->stop_signal = SIGKILL;
}

static void on_timer(struct watch *watch)
{
    uint64_t count;
    if (read(watch->timer_fd, &count, sizeof(count)) != (ssize_t)sizeof(count) || watch->phase == WATCH_REST)
        return;
    if (watch->stage == STOP_SIGNALLED) {
        watch->stage = STOP_KILLED;
        deliver(watch, SIGKILL, true);
        if (watch->shepherd->init_pidfd >= 0)
            (void)process_signal(watch->shepherd->init_pidfd, SIGCONT);
        arm(watch, INIT_GRACE_MS);
    } else if (watch->stage == STOP_KILLED) {
        watch->stage = STOP_INIT_KILLED;
        deliver(watch, SIGKILL, true);
        if (watch->shepherd->init_pidfd >= 0)
            (void)process_signal(watch->shepherd->init_pidfd, SIGKILL);
    }
}

/* --- ends --- */

static void read_status(struct watch *watch)
{
    struct init_status status;
    if (init_read_status(watch->shepherd->status_fd, &status) == 0)
        watch->ending->status = status;
    else
        watch->ending->status.phase = INIT_EXECUTING; // torn: it may have run
}

static void on_init_gone(struct watch *watch)
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
    if (status->phase != INIT_EXECUTING || status->leader_pid == 0)
        return;
    watch->leader_pidfd = process_open((pid_t)status->leader_pid, status->leader_start);
    if (watch->leader_pidfd < 0)
        return;
    watch->phase = WATCH_LEADER;
    if (watch->stage != STOP_NONE)
        deliver(watch, SIGKILL, true);
}

/* The orphaned command ended; as the next subreaper we may have become its parent. */
static void on_leader_gone(struct watch *watch)
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
    watch->phase = WATCH_REST;
}

/* --- what is left --- */

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

/* With a cgroup one write ends everything, steps with a cgroup of their own included; without, each round
 * kills what is there and reaps one. */
static void end_rest(struct watch *watch)
{
    const struct shepherd *shepherd = watch->shepherd;
    if (watch->events_fd < 0) {
        while (!shepherd->is_adopting) {
            (void)signal_step(watch, SIGKILL);
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
        (void)signal_step(watch, SIGKILL);
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

static void turn(struct watch *watch)
{
    const struct shepherd *shepherd = watch->shepherd;
    int64_t now_ms = clock_boot_ms();
    bool is_rest = watch->phase == WATCH_REST;
    bool awaits_start = !watch->is_executed && (watch->waiting_signal != 0 || watch->terms.is_suspended);
    struct pollfd sources[SOURCES] = {
        [SOURCE_PROCESS] = { watch->phase == WATCH_INIT ? shepherd->init_pidfd : watch->leader_pidfd, POLLIN,
            0 },
        [SOURCE_CTL] = { shepherd->ctl_fd, POLLIN, 0 },
        [SOURCE_TIMER] = { watch->timer_fd, POLLIN, 0 },
        /* Only a command that waits makes "executed" worth waking up for. */
        [SOURCE_CHANNEL] = { awaits_start ? shepherd->channel_fd : -1, POLLIN, 0 },
        [SOURCE_LIMIT] = { is_rest ? -1 : watch->terms.timer_fd, POLLIN, 0 },
        [SOURCE_IDLE] = { is_rest ? -1 : watch->idle.timer_fd, POLLIN, 0 },
        [SOURCE_LEASE] = { is_rest ? -1 : watch->lease.timer_fd, POLLIN, 0 },
        [SOURCE_CGROUP] = { is_rest ? watch->events_fd : -1, POLLPRI, 0 },
        [SOURCE_TERMINAL] = { shepherd->terminal.channel_fd, POLLIN, 0 },
        [SOURCE_HOST] = { shepherd->host_pidfd, POLLIN, 0 },
        [SOURCE_SAYING] = { is_rest ? -1 : status_pipe_source(&shepherd->status_pipe, now_ms), POLLIN, 0 },
    };
    if (poll(sources, SOURCES, is_rest ? -1 : status_pipe_wait_ms(&shepherd->status_pipe, now_ms)) < 0)
        return;
    if (sources[SOURCE_CHANNEL].revents != 0)
        on_executed(watch);
    /* First: with its job an exec step is killed, and that is then why its init has gone. */
    if (sources[SOURCE_HOST].revents != 0)
        on_host_gone(watch);
    if (sources[SOURCE_PROCESS].revents != 0) {
        if (watch->phase == WATCH_INIT)
            on_init_gone(watch);
        else
            on_leader_gone(watch);
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
        on_timer(watch);
    if (sources[SOURCE_LIMIT].revents != 0)
        keep_limit(watch);
    if (sources[SOURCE_IDLE].revents != 0)
        keep_idle(watch);
    if (sources[SOURCE_SAYING].revents != 0)
        on_status_pipe(watch);
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
    if (shepherd->cgroup_fd >= 0)
        watch.events_fd = openat(shepherd->cgroup_fd, "../cgroup.events", O_RDONLY | O_CLOEXEC);
    terms_open(&watch.terms, shepherd, started_ms(shepherd));
    terminal_idle_open(&watch.idle, &shepherd->spec, shepherd->spool_fd);
    if (shepherd->init_pidfd < 0)
        on_init_gone(&watch);
    else if (shepherd->spec.is_exec_step && shepherd->host_pidfd < 0)
        on_host_gone(&watch);
    if (shepherd->early.magic != 0)
        obey(&watch, &shepherd->early);
    node_lease_open(&watch.lease, shepherd);
    keep_limit(&watch);
    keep_idle(&watch);
    keep_lease(&watch);
    settle_suspension(&watch);
    while (watch.phase != WATCH_OVER) {
        if (watch.phase == WATCH_REST)
            end_rest(&watch);
        if (watch.phase != WATCH_OVER)
            turn(&watch);
    }
    finish_status_pipe(&watch);
    terms_close(&watch.terms);
    terminal_idle_close(&watch.idle);
    node_lease_close(&watch.lease);
    closep(&watch.events_fd);
    closep(&watch.timer_fd);
    closep(&watch.leader_pidfd);
}

/* SPDX-License-Identifier: MIT */
/*
 * The one protocol that ends a step, for every cause (cancel, time limit, requeue, preemption, drain, a
 * checkpoint, a node that is lost, an unused terminal):
 *
 *   1. A note is written, for a shepherd that may adopt the step.
 *   2. Processes that would only die of the signal and have a descendant that handles it (a script's shell, a
 *      launcher) are stopped: their death would close pipes or hang up the terminal of those that save their
 *      work. Readers of their output (tee) are left alone. All others get the signal, and SIGCONT.
 *   3. A stopped process gets the signal as soon as it has no such descendant left.
 *   4. After the grace period, SIGKILL for all, and finally for the init, which comes last because only it
 *      has the exit status of the command. The grace belongs to the processes: if the command ends before
 *      others, these have the rest of it (watch_rest.c).
 *
 * Other signals are not meant to end anything; their recipients are defined by enum signal_scope
 * (job/launch.h).
 *
 * A stop may wait for the job to save its work: the job gets the signal it has chosen, and is killed as soon
 * as it reports CHECKPOINTED, or after the grace. A report from before the signal does not count. The warning
 * before a time limit that requeues the job also asks it to save its work.
 */
#include <signal.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "shepherd/processes/roles.h"
#include "shepherd/processes/tree.h"
#include "shepherd/stopping.h"
#include "shepherd/watch_private.h"

#define INIT_GRACE_MS 2000 // between SIGKILL for the command and SIGKILL for its init
#define GRACE_MS_MAX  (365LL * 24 * 3600 * 1000)
#define RELEASE_MS    100 // between two checks of the stopped processes

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

/* Sends the signal to the processes of `tree`. True if there was one. */
static bool signal_tree(struct watch *watch, const struct tree *tree, int signal)
{
    int r = tree_signal(tree, signal);
    /* The root of a tree is not part of it. */
    if (watch->shepherd->is_adopting && watch->shepherd->cgroup_fd < 0 && watch->leader_pidfd >= 0)
        return process_signal(watch->leader_pidfd, signal) == 0 || r != 0;
    return r != 0;
}

bool watch_signal(struct watch *watch, int signal)
{
    struct tree tree = step_tree(watch);
    return signal_tree(watch, &tree, signal);
}

void watch_list(struct watch *watch, struct roll *roll)
{
    struct tree tree = step_tree(watch);
    if (watch->is_holding && roles_matter(watch->stop_signal)) {
        tree_survey(&tree, watch->stop_signal);
        tree.roles = ~(ROLE_MASK(ROLE_HOLDER) | ROLE_MASK(ROLE_DONE));
    }
    tree_list(&tree, roll);
}

/* --- signals that end nothing --- */

/* Signals that a person sends to end a program, as terminals and logins do. */
static bool is_ending_signal(int signal)
{
    return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

/* `is_warning`: no user has requested the signal, so it must not end a job that does not handle it. */
static void signal_handlers(struct watch *watch, struct tree *tree, int signal, bool is_warning)
{
    if (roles_matter(signal)) {
        tree_survey(tree, signal);
        bool has_handler = roles_count(ROLE_HANDLER) > 0;
        if (is_warning || (has_handler && !is_ending_signal(signal)))
            tree->roles = ROLE_MASK(ROLE_HANDLER);
        else if (has_handler)
            tree->roles = ~(ROLE_MASK(ROLE_HOLDER) | ROLE_MASK(ROLE_READER));
    }
    (void)signal_tree(watch, tree, signal);
}

static void signal_command(struct watch *watch, struct tree *tree, int signal)
{
    struct init_status status;
    if (init_read_status(watch->shepherd->status_fd, &status) < 0)
        return;
    _cleanup_close_ int pidfd = process_open((pid_t)status.leader_pid, status.leader_start);
    roll_add(tree->roll, (pid_t)status.leader_pid);
    if (pidfd >= 0)
        (void)process_signal(pidfd, signal);
}

static void signal_others(struct watch *watch, struct tree *tree, int signal)
{
    struct init_status status;
    if (init_read_status(watch->shepherd->status_fd, &status) == 0)
        tree->command = (pid_t)status.leader_pid;
    (void)tree_signal(tree, signal);
}

static void send_to(struct watch *watch, int signal, uint64_t scope, bool is_warning)
{
    struct tree tree = step_tree(watch);
    struct roll reached = { 0 };
    tree.roll = &reached;
    switch (scope) {
    case SIGNAL_OTHERS: signal_others(watch, &tree, signal); break;
    case SIGNAL_COMMAND: signal_command(watch, &tree, signal); break;
    case SIGNAL_ALL: (void)signal_tree(watch, &tree, signal); break;
    default: signal_handlers(watch, &tree, signal, is_warning); break;
    }
    ending_add_signal(watch->ending, signal, &reached);
    watch->ending->is_killed |= signal == SIGKILL;
}

void watch_warn(struct watch *watch)
{
    const struct launch_spec *spec = &watch->shepherd->spec;
    send_to(watch, (int)spec->warn_signal, spec->warn_scope, true);
}

/* --- stops and their stages --- */

void watch_arm(struct watch *watch, int64_t after_ms)
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

/* SIGKILL is sent to all processes. */
static bool kill_all(struct watch *watch)
{
    struct ending *ending = watch->ending;
    bool is_any = watch_signal(watch, SIGKILL);
    ending->is_killed = true;
    if (is_any && ending->stop_signal == 0)
        ending->stop_signal = SIGKILL;
    return is_any;
}

static bool signal_gently(struct watch *watch, int signal)
{
    struct tree tree = step_tree(watch);
    struct roll reached = { 0 };
    uint32_t holders = ROLE_MASK(ROLE_HOLDER), readers = ROLE_MASK(ROLE_READER);
    bool has_roles = roles_matter(signal);
    if (has_roles)
        tree_survey(&tree, signal);
    if (has_roles && roles_count(ROLE_HOLDER) > 0) {
        tree.roles = holders;
        (void)tree_signal(&tree, SIGSTOP);
        watch->is_holding = true;
        watch->release_ms = clock_boot_ms() + RELEASE_MS;
    }
    tree.roles = has_roles ? ~(holders | readers) : 0;
    tree.roll = &reached;
    bool is_any = signal_tree(watch, &tree, signal);
    ending_add_signal(watch->ending, signal, &reached);
    /* A stopped process would miss its last chance to react. */
    tree.roles = has_roles ? ~holders : 0;
    tree.roll = NULL;
    (void)signal_tree(watch, &tree, SIGCONT);
    return is_any;
}

static void deliver_stop(struct watch *watch, int signal)
{
    stopping_note(watch->shepherd, watch->ending, signal, false, watch->kill_ms);
    bool is_any = signal == SIGKILL ? kill_all(watch) : signal_gently(watch, signal);
    watch->stop_signal = signal;
    if (is_any && watch->ending->stop_signal == 0)
        watch->ending->stop_signal = (uint32_t)signal;
    stopping_note(watch->shepherd, watch->ending, signal, true, watch->kill_ms);
}

void watch_release(struct watch *watch)
{
    struct tree tree = step_tree(watch);
    if (!watch->is_holding || watch->stage != STOP_SIGNALLED || clock_boot_ms() < watch->release_ms)
        return;
    watch->release_ms = clock_boot_ms() + RELEASE_MS;
    tree_survey(&tree, watch->stop_signal);
    if (roles_count(ROLE_DONE) == 0)
        return;
    tree.roles = ROLE_MASK(ROLE_DONE);
    (void)tree_signal(&tree, watch->stop_signal);
    (void)tree_signal(&tree, SIGCONT);
}

int watch_release_wait_ms(const struct watch *watch)
{
    int64_t left_ms = watch->release_ms - clock_boot_ms();
    return !watch->is_holding || watch->stage != STOP_SIGNALLED ? -1 : left_ms > 0 ? (int)left_ms : 0;
}

static void execute(struct watch *watch, const struct spool_command *command)
{
    if (command->grace_ms < 0)
        send_to(watch, (int)command->signal, command->scope, false);
    else if (!watch->is_signalled || (int)command->signal != watch->stop_signal)
        deliver_stop(watch, (int)command->signal);
    else
        stopping_note(watch->shepherd, watch->ending, (int)command->signal, true, watch->kill_ms);
    watch->is_signalled = false;
}

/* Of several commands received before the command runs, a stop takes precedence. */
static void keep_waiting(struct watch *watch, const struct spool_command *command)
{
    if (watch->waiting.signal == 0 || watch->waiting.grace_ms < 0 || command->grace_ms >= 0)
        watch->waiting = *command;
}

void watch_obey_kept(struct watch *watch)
{
    if (watch->waiting.signal != 0)
        execute(watch, &watch->waiting);
    watch->waiting.signal = 0;
}

void watch_obey(struct watch *watch, const struct spool_command *command)
{
    bool is_stop = command->grace_ms >= 0;
    /* A command that has ended by itself is not stopped any more. */
    if (watch->phase == WATCH_REST || (watch->phase == WATCH_LAST && watch->stage == STOP_NONE))
        return;
    if (is_stop && watch->stage < STOP_KILLED) {
        int64_t grace_ms = command->grace_ms < GRACE_MS_MAX ? command->grace_ms : GRACE_MS_MAX;
        if (watch->stage == STOP_NONE || grace_ms < armed_ms(watch)) {
            watch_arm(watch, grace_ms);
            watch->kill_ms = clock_boot_ms() + grace_ms;
            watch->ending->grace_ms = grace_ms;
        }
        watch->stage = STOP_SIGNALLED;
    }
    if (watch->is_executed)
        execute(watch, command);
    else
        keep_waiting(watch, command);
}

void watch_resume_stop(struct watch *watch, const struct init_stop *stop)
{
    int64_t left_ms = stop->kill_boot_ms - clock_boot_ms();
    watch->stage = STOP_SIGNALLED;
    watch->kill_ms = stop->kill_boot_ms;
    watch->stop_signal = (int)stop->signal;
    watch->is_signalled = stop->is_sent != 0;
    watch->is_holding = stop->is_sent != 0;
    watch_arm(watch, left_ms > 0 ? left_ms : 0);
    if (!watch->is_signalled)
        deliver_stop(watch, watch->stop_signal);
}

void watch_on_timer(struct watch *watch)
{
    uint64_t count;
    if (read(watch->timer_fd, &count, sizeof(count)) != (ssize_t)sizeof(count) || watch->phase == WATCH_REST)
        return;
    int init_pidfd = watch->shepherd->init_pidfd;
    if (watch->phase == WATCH_LAST) {
        watch_end_last(watch);
    } else if (watch->stage == STOP_SIGNALLED) {
        watch->stage = STOP_KILLED;
        if (watch->ending->grace_ms > 0)
            watch_list(watch, &watch->ending->killed);
        (void)kill_all(watch);
        if (init_pidfd >= 0)
            (void)process_signal(init_pidfd, SIGCONT);
        watch_arm(watch, INIT_GRACE_MS);
    } else if (watch->stage == STOP_KILLED) {
        watch->stage = STOP_INIT_KILLED;
        (void)kill_all(watch);
        if (init_pidfd >= 0)
            (void)process_signal(init_pidfd, SIGKILL);
    }
}

/* --- a stop that waits for a checkpoint --- */

/* The end counts as that of the stop, however the command ended, even if it ended before the signal. */
static void note_saved(struct watch *watch)
{
    struct ending *ending = watch->ending;
    if (status_pipe_save(&watch->shepherd->status_pipe) == SAVE_AT_LIMIT)
        ending->stop_end = END_TIME_LIMIT;
    if (ending->stop_signal == 0)
        ending->stop_signal = SIGKILL;
}

/* The job has saved its work after being asked to. */
static void end_saved(struct watch *watch)
{
    if (watch->stage >= STOP_KILLED || watch->phase == WATCH_REST)
        return;
    note_saved(watch);
    watch_obey(watch, &(struct spool_command){ .signal = SIGKILL });
}

/* Earlier reports do not count; repeating a stop does not change that. */
void watch_await_checkpoint(struct watch *watch, enum spool_save save)
{
    struct status_pipe *status_pipe = &watch->shepherd->status_pipe;
    bool is_saved = status_pipe_drain(status_pipe);
    if (is_saved && status_pipe_save(status_pipe) != SAVE_UNASKED)
        end_saved(watch);
    if (status_pipe_save(status_pipe) != SAVE_AT_STOP)
        status_pipe_ask_save(status_pipe, save);
}

void watch_stop_when_saved(struct watch *watch, int64_t grace_ms, enum spool_save save)
{
    uint32_t signal = watch->shepherd->spec.checkpoint_signal;
    watch_await_checkpoint(watch, save);
    watch_obey(watch,
        &(struct spool_command){ .signal = signal != 0 ? signal : (uint32_t)SIGTERM, .grace_ms = grace_ms });
}

void watch_on_status_pipe(struct watch *watch)
{
    struct status_pipe *status_pipe = &watch->shepherd->status_pipe;
    if (status_pipe_read(status_pipe, clock_boot_ms()) && status_pipe_save(status_pipe) != SAVE_UNASKED)
        end_saved(watch);
}

/* The last reports may be read after the end. */
void watch_finish_status_pipe(struct watch *watch)
{
    struct status_pipe *status_pipe = &watch->shepherd->status_pipe;
    if (status_pipe_finish(status_pipe) && status_pipe_save(status_pipe) != SAVE_UNASKED)
        note_saved(watch);
}

/* SPDX-License-Identifier: MIT */
/*
 * The tasks of a step, from their start to the exit status of srun. Signals for srun are forwarded to its
 * tasks. Signals sent by mgpu reach the tasks directly, because they are for every process of the job, so
 * srun forwards only those of the job's own processes (a script's `kill`) and of the terminal. If srun does
 * not run in a job, it forwards all.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/leaving_signals.h"
#include "cli/follow/going.h"
#include "cli/submit/slurm_moment.h"
#include "compat/step/labels.h"
#include "compat/step/step.h"
#include "compat/step/step_input.h"
#include "compat/step/step_peer.h"
#include "compat/step/step_record.h"
#include "compat/step/step_start.h"
#include "compat/stepd/oom.h"
#include "compat/stepd/usage.h"

#define KILL_MS 30000 // from SIGTERM to SIGKILL, like Slurm's KillWait

enum { SOURCE_SIGNAL, SOURCE_RECORD, SOURCES };

static const int passed_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };

static int open_signals(sigset_t *ret_before)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGPIPE); // from a task that does not read its input
    for (size_t i = 0; i < sizeof(passed_signals) / sizeof(passed_signals[0]); i++)
        (void)sigaddset(&set, passed_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- signals and ends --- */

static void signal_task(const struct step *step, const struct step_task *task, int number)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    if (!task->is_running)
        return;
    if (task->pid > 0) {
        (void)kill(task->pid, number);
        return;
    }
    frame_add_number(&out, 4, (uint32_t)number);
    step_peer_put(&step->peers[task->node], FRAME_SIGNAL, task->id, out.bytes, out.length);
}

/* Sends a signal to all running tasks. */
static void step_signal(const struct step *step, int number)
{
    for (uint32_t i = 0; i < step->count; i++)
        signal_task(step, &step->tasks[i], number);
}

static bool is_running(const struct step *step)
{
    for (uint32_t i = 0; i < step->count; i++)
        if (step->tasks[i].is_running)
            return true;
    return false;
}

/* In Slurm's words, which users search for in the output of a job. */
static void print_cancelled(const struct step *step, bool is_late)
{
    _cleanup_free_ char *when = slurm_time_text(clock_wall_ms(), "now");
    if (is_running(step))
        (void)fprintf(stderr,
            "slurmstepd: error: *** STEP %" PRIu64 ".%" PRId64 " ON %s CANCELLED AT %s%s ***\n", step->job_id,
            step_id(step), step->nodes.items[0], when, is_late ? " DUE TO TIME LIMIT" : "");
}

static void print_terminating(const struct step *step)
{
    if (!step->job->is_quiet)
        (void)fprintf(stderr,
            "srun: launch/slurm: _step_signal: Terminating StepId=%" PRIu64 ".%" PRId64 "\n", step->job_id,
            step_id(step));
}

void step_terminate(struct step *step)
{
    if (step->is_ending)
        return;
    step->is_ending = true;
    step->kill_ms = clock_boot_ms() + KILL_MS;
    print_terminating(step);
    step_signal(step, SIGCONT);
    step_signal(step, SIGTERM);
}

static void print_end(const struct step *step, const struct step_task *task)
{
    const char *node = step->nodes.items[task->node];
    if (task->is_out_of_memory)
        (void)fprintf(stderr, "srun: error: %s: task %u: Out Of Memory\n", node, task->id);
    else if (WIFSIGNALED(task->status))
        (void)fprintf(
            stderr, "srun: error: %s: task %u: %s\n", node, task->id, strsignal(WTERMSIG(task->status)));
    else if (WEXITSTATUS(task->status) != 0)
        (void)fprintf(stderr, "srun: error: %s: task %u: Exited with exit code %d\n", node, task->id,
            WEXITSTATUS(task->status));
}

void step_task_end(struct step *step, struct step_task *task, int status)
{
    task->is_running = false;
    task->pid = 0;
    task->status = status;
    if (step->late_ms == 0 && step->job->wait_s > 0 && !step->has_ended_first)
        step->late_ms = clock_boot_ms() + step->job->wait_s * INT64_C(1000);
    step->has_ended_first = true;
    print_end(step, task);
    if (status != 0 && step->job->is_killed_on_exit && !step->is_ending) {
        step_terminate(step);
        print_cancelled(step, false);
    }
}

uint32_t step_count_out_of_memory(const struct step *step)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->count; i++)
        count += step->tasks[i].is_out_of_memory;
    return count;
}

/* Reaps tasks that are children of srun. */
static void reap(struct step *step)
{
    for (uint32_t i = 0; i < step->count; i++) {
        struct step_task *task = &step->tasks[i];
        struct rusage counted;
        int status = 0;
        if (task->pid <= 0 || wait4(task->pid, &status, WNOHANG, &counted) != task->pid)
            continue;
        usage_end(&task->usage, &counted);
        task->is_out_of_memory = oom_is_end(status, &step->oom_kills);
        step_task_end(step, task, status);
    }
}

/* --- the state of the tasks, for people --- */

enum task_state { TASK_RUNNING, TASK_EXITED, TASK_FAILED, TASK_STATES };

static enum task_state state_of(const struct step_task *task)
{
    return task->is_running ? TASK_RUNNING : task->status == 0 ? TASK_EXITED : TASK_FAILED;
}

/* "tasks 0,2-5: running", for each state that applies to a task. */
static void print_state(const struct step *step, enum task_state state)
{
    static const char *const names[] = { "running", "exited", "exited abnormally" };
    _cleanup_buffer_ struct buffer list = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t last = i;
        if (state_of(&step->tasks[i]) != state)
            continue;
        while (last + 1 < step->count && state_of(&step->tasks[last + 1]) == state)
            last++;
        buffer_printf(&list, "%s%u", count > 0 ? "," : "", i);
        if (last > i)
            buffer_printf(&list, "-%u", last);
        count += last - i + 1;
        i = last;
    }
    if (count > 0)
        (void)fprintf(stderr, "srun: StepId=%" PRIu64 ".%" PRId64 " %s %s: %s\n", step->job_id, step_id(step),
            count > 1 ? "tasks" : "task", buffer_text(&list), names[state]);
}

static void print_states(const struct step *step)
{
    for (int state = TASK_RUNNING; state < TASK_STATES; state++)
        print_state(step, (enum task_state)state);
}

/* --- ends --- */

/* Of --time. */
static void end_at_limit(struct step *step)
{
    if (step->limit_ms == 0 || clock_boot_ms() < step->limit_ms || !is_running(step))
        return;
    step->limit_ms = 0;
    print_cancelled(step, true);
    step_terminate(step);
}

/* The job or the step has been cancelled, or the job has reached its limit. */
static void print_aborted(struct step *step, struct step_record *record)
{
    if (step->is_ending || step->is_end_shown || step->job->is_quiet || !is_running(step))
        return;
    step->is_end_shown = true;
    (void)fprintf(stderr, "srun: Job step aborted: Waiting up to %d seconds for job step to finish.\n",
        KILL_MS / 1000 + 2);
    print_cancelled(step, step_record_is_late(record, step));
}

/* With --wait, the other tasks may outlive the first by that time; tasks told to end may run for KILL_MS. */
static void end_late(struct step *step)
{
    int64_t now_ms = clock_boot_ms();
    if (step->late_ms != 0 && now_ms >= step->late_ms && is_running(step)) {
        (void)fprintf(stderr, "srun: First task exited %" PRId64 "s ago\n", step->job->wait_s);
        print_states(step);
        print_terminating(step);
        (void)fprintf(stderr, "srun: Job step aborted: Waiting up to %d seconds for job step to finish.\n",
            KILL_MS / 1000 + 2);
        print_cancelled(step, false);
        step_signal(step, SIGKILL);
        step->late_ms = 0;
        step->is_late = true;
    }
    if (step->kill_ms == 0 || now_ms < step->kill_ms)
        return;
    step_signal(step, SIGKILL);
    step->kill_ms = 0;
}

/* --- Ctrl-C --- */

/* The first Ctrl-C shows the state of the tasks; another within a second ends the step. */
static void interrupt(struct step *step)
{
    bool is_again = going_is_again(&step->interrupted_ms, clock_boot_ms());
    if (!is_again && !step->job->is_status_off) {
        (void)fprintf(stderr, "srun: interrupt (one more within 1 sec to abort)\n");
        print_states(step);
        return;
    }
    if (step->is_ending) {
        (void)fprintf(stderr, "srun: forcing job termination\n");
        step_signal(step, SIGKILL);
        return;
    }
    (void)fprintf(
        stderr, "srun: sending Ctrl-C to StepId=%" PRIu64 ".%" PRId64 "\n", step->job_id, step_id(step));
    step_signal(step, SIGINT);
    step_terminate(step);
}

/* --- usage --- */

static void sample(struct step *step, struct step_record *record)
{
    if (clock_boot_ms() < step->started_ms + usage_next_ms(step->samples))
        return;
    step->samples++;
    for (uint32_t i = 0; i < step->count; i++)
        if (step->tasks[i].pid > 0)
            usage_sample(&step->tasks[i].usage, step->tasks[i].pid);
    step_record_report(record, step);
}

/* --- the loop --- */

static void take_earlier(int64_t *earliest_ms, int64_t ms)
{
    if (ms != 0 && ms < *earliest_ms)
        *earliest_ms = ms;
}

/* The maximum time to wait for the next event. */
static int wait_ms(const struct step *step, const struct step_record *record)
{
    int most_ms = step_record_wait_ms(record);
    int64_t earliest_ms = step->started_ms + usage_next_ms(step->samples);
    take_earlier(&earliest_ms, step->late_ms);
    take_earlier(&earliest_ms, step->kill_ms);
    take_earlier(&earliest_ms, step->limit_ms);
    int64_t left_ms = earliest_ms - clock_boot_ms();
    left_ms = left_ms < 0 ? 0 : left_ms > INT32_MAX ? INT32_MAX : left_ms;
    return most_ms >= 0 && most_ms < left_ms ? most_ms : (int)left_ms;
}

/* True for a process of the same session, or one that has ended since: mgpu's own processes live longer. */
static bool is_of_session(pid_t sender)
{
    pid_t session = getsid(sender);
    return session == getsid(0) || (session < 0 && errno == ESRCH);
}

/* Signals that were ignored when srun began: under nohup every hangup, and in a script's background command
 * the keys of the terminal. Signals sent by a script are passed on. */
static bool is_refused(const struct signalfd_siginfo *info)
{
    return leaving_is_ignored((int)info->ssi_signo) &&
           (info->ssi_signo == SIGHUP || info->ssi_code == SI_KERNEL);
}

/* With its own terminal, the task receives the keys directly. */
static bool is_for_task(const struct step *step, const struct signalfd_siginfo *info)
{
    bool is_key = info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT;
    return step->job->is_on_terminal && is_key && info->ssi_code == SI_KERNEL;
}

static void take_signals(struct step *step, struct step_record *record, int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int number = (int)info.ssi_signo;
        bool is_inside = getenv("MGPU_JOB_ID") != NULL; // elsewhere mgpu sends no signals
        bool is_ours = info.ssi_code == SI_USER && (!is_inside || is_of_session((pid_t)info.ssi_pid));
        if (number == SIGCHLD || number == SIGPIPE || is_refused(&info) || is_for_task(step, &info))
            continue;
        if (number == SIGINT && info.ssi_code == SI_KERNEL)
            interrupt(step);
        else if (is_ours || info.ssi_code == SI_KERNEL)
            step_signal(step, number);
        else if (number == SIGTERM)
            print_aborted(step, record); // mgpu also sends the signal to the tasks
    }
}

struct loop {
    struct step *step;
    struct step_record *record;
    struct labels labels;
    struct step_input input;
    int signal_fd;
    struct pollfd *sources; // signals and record, pipes of tasks, standard input and tasks, nodes
};

static nfds_t count_sources(const struct step *step)
{
    return SOURCES + 1 + (1 + LABEL_STREAMS) * (nfds_t)step->count + step->nodes.count;
}

/* False if there is nothing left to wait for. */
static bool turn(struct loop *loop)
{
    struct step *step = loop->step;
    struct pollfd *pipes = loop->sources + SOURCES, *input = pipes + (size_t)step->count * LABEL_STREAMS,
                  *peers = input + 1 + step->count;
    bool is_open = labels_fill(&loop->labels, step, pipes);
    if (!is_open && !is_running(step))
        return false;
    loop->sources[SOURCE_SIGNAL] = (struct pollfd){ .fd = loop->signal_fd, .events = POLLIN };
    loop->sources[SOURCE_RECORD] = (struct pollfd){ .fd = step_record_fd(loop->record), .events = POLLIN };
    step_input_fill(&loop->input, step, input);
    for (uint32_t i = 0; i < step->nodes.count; i++)
        peers[i] = step_peer_source(&step->peers[i]);
    if (poll(loop->sources, count_sources(step), wait_ms(step, loop->record)) < 0)
        return true;
    labels_serve(&loop->labels, step, pipes);
    step_input_serve(&loop->input, step, input);
    for (uint32_t i = 0; i < step->nodes.count; i++)
        step_peer_serve(step, &step->peers[i], peers[i].revents, &loop->labels);
    step_record_keep(loop->record, loop->sources[SOURCE_RECORD].revents != 0);
    for (int signal = 0; (signal = step_record_signal(loop->record)) != 0;) {
        if (loop->record->is_cancelled)
            print_aborted(step, loop->record);
        step_signal(step, signal);
    }
    take_signals(step, loop->record, loop->signal_fd);
    reap(step);
    end_at_limit(step);
    end_late(step);
    sample(step, loop->record);
    return true;
}

static int worst(const struct step *step)
{
    int highest = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        int status = step->tasks[i].status;
        int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        highest = code > highest ? code : highest;
    }
    return highest;
}

static int start_all(struct step *step, const sigset_t *mask, struct error *err)
{
    int r = 0;
    step->peers = xcalloc(step->nodes.count, sizeof(*step->peers));
    for (uint32_t i = 0; i < step->nodes.count; i++)
        step->peers[i] = (struct step_peer){ .node = i, .fd = -1 };
    for (uint32_t i = 0; r == 0 && i < step->nodes.count; i++)
        if (step_has_peer(step, i) && !step->job->is_on_terminal)
            r = step_peer_start(step, i, mask, err);
    for (uint32_t i = 0; r == 0 && i < step->count; i++)
        if (!step_has_peer(step, step->tasks[i].node) || step->job->is_on_terminal)
            r = step_start(step, &step->tasks[i], mask, err);
    return r;
}

static void end_all(struct step *step)
{
    for (uint32_t i = 0; i < step->nodes.count; i++) {
        struct step_peer *peer = &step->peers[i];
        step_peer_clear(peer); // it exits when it has nothing more to read
        if (peer->pid > 0)
            (void)waitpid(peer->pid, NULL, 0);
    }
    for (uint32_t i = 0; i < step->count; i++) {
        closep(&step->tasks[i].files[0]);
        closep(&step->tasks[i].files[1]);
    }
    step_gathers_clear(step);
    free(take_ptr(step->peers));
}

/* Runs the tasks of a step that has begun. */
static int run_tasks(struct step *step, struct step_record *record, struct error *err)
{
    sigset_t before;
    struct loop loop = { .step = step, .record = record };
    int r = step_input_open(&loop.input, step, err);
    if (r < 0)
        return r;
    loop.signal_fd = open_signals(&before);
    step->started_ms = clock_boot_ms();
    if (step->job->time_s > 0)
        step->limit_ms = step->started_ms + step->job->time_s * 1000;
    step->oom_kills = oom_kills();
    labels_init(&loop.labels, step);
    loop.sources = xcalloc(count_sources(step), sizeof(*loop.sources));
    r = start_all(step, &before, err);
    if (r < 0)
        step_signal(step, SIGKILL);
    while (turn(&loop)) {
    }
    labels_end(&loop.labels);
    end_all(step);
    labels_clear(&loop.labels);
    step_input_clear(&loop.input, step);
    closep(&loop.signal_fd);
    free(loop.sources);
    return r < 0 ? r : worst(step);
}

/* For tasks that were ended by something other than their user or --wait. */
static void print_signalled(const struct step *step)
{
    bool is_signalled = false;
    for (uint32_t i = 0; i < step->count; i++) {
        int status = step->tasks[i].status;
        is_signalled |= WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
    }
    if (is_signalled && step->interrupted_ms == 0 && !step->is_late && !step->is_end_shown &&
        !step->job->is_quiet)
        (void)fprintf(
            stderr, "srun: Force Terminated StepId=%" PRIu64 ".%" PRId64 "\n", step->job_id, step_id(step));
}

/* In Slurm's words, which explain to users why a program was killed. */
static void print_out_of_memory(const struct step *step)
{
    uint32_t count = step_count_out_of_memory(step);
    if (count > 0)
        (void)fprintf(stderr,
            "slurmstepd: error: Detected %u oom_kill event%s in StepId=%" PRIu64 ".%" PRId64
            ". Some of the step tasks have been OOM Killed.\n",
            count, count > 1 ? "s" : "", step->job_id, step_id(step));
}

int step_run(struct step *step, struct error *err)
{
    _cleanup_(step_record_clear) struct step_record record = { 0 };
    int r = step_record_begin(&record, step, err);
    if (r < 0)
        return r;
    step->record = record.step;
    step_print(step);
    r = run_tasks(step, &record, err);
    print_out_of_memory(step);
    print_signalled(step);
    step_record_end(&record, step, r < 0 ? 1 : r);
    step->record = NULL;
    return r;
}

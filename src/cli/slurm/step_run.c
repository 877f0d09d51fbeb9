/* SPDX-License-Identifier: MIT */
/*
 * Signals for srun are forwarded to its tasks. Signals sent by mgpu reach the tasks directly, because they
 * are for every process of the job; only those of the job's own processes (a script's `kill`) are forwarded.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/follow/session.h"
#include "cli/slurm/labels.h"
#include "cli/slurm/step.h"
#include "cli/slurm/step_record.h"

#define NOT_FOUND 2 // as slurmstepd ends a task whose program does not exist

static const int passed_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };

static int open_signals(sigset_t *ret_before)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_signals) / sizeof(passed_signals[0]); i++)
        (void)sigaddset(&set, passed_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, ret_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- one task, in its own process --- */

static _Noreturn void give_up(const char *what, const char *name)
{
    (void)fprintf(stderr, "slurmstepd: error: %s %s: %s\n", what, name, strerror(errno));
    _exit(NOT_FOUND);
}

static void redirect(const struct step *step, const struct step_task *task, const char *pattern, int target)
{
    const struct slurm_job *job = step->job;
    bool is_appended = job->open_mode != NULL && strcmp(job->open_mode, "append") == 0;
    bool is_shared = strstr(pattern, "%t") == NULL && task->id > 0; // the first of them has emptied it
    bool is_none = strcmp(pattern, "none") == 0;
    _cleanup_free_ char *path = is_none ? xstrdup("/dev/null") : step_path(step, task, pattern);
    int flags = target == STDIN_FILENO
                    ? O_RDONLY
                    : O_WRONLY | O_CREAT | O_APPEND | (is_appended || is_shared ? 0 : O_TRUNC);
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0 || dup2(fd, target) < 0)
        give_up("Could not open file", path);
    if (fd != target)
        (void)close(fd);
}

static void redirect_all(const struct step *step, const struct step_task *task)
{
    const struct slurm_job *job = step->job;
    if (job->output != NULL && strcmp(job->output, "all") != 0)
        redirect(step, task, job->output, STDOUT_FILENO);
    if (job->error != NULL)
        redirect(step, task, job->error, STDERR_FILENO);
    else if (job->output != NULL && strcmp(job->output, "all") != 0)
        (void)dup2(STDOUT_FILENO, STDERR_FILENO);
    if (job->input != NULL && strcmp(job->input, "all") != 0)
        redirect(step, task, job->input, STDIN_FILENO);
    else if (task->id > 0)
        redirect(step, task, "/dev/null", STDIN_FILENO);
}

static _Noreturn void run_here(
    const struct step *step, const struct step_task *task, const struct strings *variables)
{
    for (size_t i = 0; i < variables->count; i++) {
        char *equals = strchr(variables->items[i], '=');
        *equals = '\0';
        (void)setenv(variables->items[i], equals + 1, 1);
    }
    _cleanup_free_ char *pid = xasprintf("%d", (int)getpid());
    (void)setenv("SLURM_TASK_PID", pid, 1);
    if (step->job->submit.directory != NULL && chdir(step->job->submit.directory) < 0)
        give_up("couldn't chdir to", step->job->submit.directory);
    (void)execvp(task->command[0], task->command);
    give_up("execve():", task->command[0]);
}

/* A process of the job on another node, for as long as this one lives. */
static _Noreturn void run_there(
    const struct step *step, const struct step_task *task, const struct strings *variables)
{
    static const struct command command = { .name = "srun" };
    struct call call = { .command = &command, .is_quiet = true };
    struct error err = { 0 };
    json_t *body = json_object(), *words = json_array(), *env = json_object();
    _cleanup_free_ char *path = xasprintf("%" PRIu64, step->job_id);
    _cleanup_free_ char *here = getcwd(NULL, 0);
    int status = -1;
    uint64_t position = 0;
    for (size_t i = 0; task->command[i] != NULL; i++)
        (void)json_array_append_new(words, json_string(task->command[i]));
    for (size_t i = 0; i < variables->count; i++) {
        char *equals = strchr(variables->items[i], '=');
        *equals = '\0';
        (void)json_object_set_new(env, variables->items[i], json_string(equals + 1));
    }
    (void)json_object_set_new(body, "command", words);
    (void)json_object_set_new(body, "env", env);
    if (here != NULL)
        (void)json_object_set_new(body, "cwd", json_string(here));
    client_init(&call.client, NULL, NULL);
    const struct session_options session = {
        .path = path, .rank = step->ranks[task->node], .exec = body, .is_input_shut = task->id > 0
    };
    if (session_run(&call, &session, &status, &position, &err) < 0) {
        (void)fprintf(
            stderr, "srun: error: %s: task %u: %s\n", step->nodes.items[task->node], task->id, err.message);
        status = 1;
    }
    (void)fflush(stdout);
    _exit(status < 0 || status > 255 ? 1 : status == 127 ? NOT_FOUND : status);
}

static int start(const struct step *step, struct step_task *task, const sigset_t *mask, struct error *err)
{
    _cleanup_strings_ struct strings variables = { 0 };
    int pipe_fds[2] = { -1, -1 };
    bool is_labelled = step->job->is_labelled;
    step_environment(step, task, &variables);
    if (is_labelled && pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set_errno(err, -errno, "cannot create a pipe");
    (void)fflush(NULL);
    task->pid = fork();
    if (task->pid < 0)
        return error_set_errno(err, -errno, "cannot start task %u", task->id);
    if (task->pid == 0) {
        (void)sigprocmask(SIG_SETMASK, mask, NULL);
        if (is_labelled && (dup2(pipe_fds[1], STDOUT_FILENO) < 0 || dup2(pipe_fds[1], STDERR_FILENO) < 0))
            give_up("dup2", "");
        redirect_all(step, task);
        if (step->ranks[task->node] == step->here)
            run_here(step, task, &variables);
        run_there(step, task, &variables);
    }
    if (is_labelled)
        (void)close(pipe_fds[1]);
    task->pipe_fd = pipe_fds[0];
    return 0;
}

/* --- all of them --- */

static void signal_all(const struct step *step, int number)
{
    for (uint32_t i = 0; i < step->count; i++)
        if (step->tasks[i].pid > 0)
            (void)kill(step->tasks[i].pid, number);
}

static void tell_end(const struct step *step, const struct step_task *task)
{
    const char *node = step->nodes.items[task->node];
    if (WIFSIGNALED(task->status))
        (void)fprintf(
            stderr, "srun: error: %s: task %u: %s\n", node, task->id, strsignal(WTERMSIG(task->status)));
    else if (WEXITSTATUS(task->status) != 0)
        (void)fprintf(stderr, "srun: error: %s: task %u: Exited with exit code %d\n", node, task->id,
            WEXITSTATUS(task->status));
}

/* With --wait, the other tasks may outlive the first for so long. */
static void end_late(struct step *step, uint32_t running)
{
    int64_t wait_s = step->job->wait_s;
    if (running == 0 || step->late_ms == 0 || clock_boot_ms() < step->late_ms)
        return;
    (void)fprintf(stderr, "srun: First task exited %" PRId64 "s ago\n", wait_s);
    (void)fprintf(stderr, "srun: Terminating StepId=%" PRIu64 ".%" PRId64 "\n", step->job_id, step_id(step));
    signal_all(step, SIGKILL);
    step->late_ms = 0;
}

/* How long to wait for the next event at most; -1: forever. */
static int wait_ms(const struct step *step, const struct step_record *record)
{
    int most_ms = step_record_wait_ms(record);
    int64_t left_ms = step->late_ms == 0 ? -1 : step->late_ms - clock_boot_ms();
    if (step->late_ms == 0)
        return most_ms;
    left_ms = left_ms < 0 ? 0 : left_ms > INT32_MAX ? INT32_MAX : left_ms;
    return most_ms >= 0 && most_ms < left_ms ? most_ms : (int)left_ms;
}

/* Takes the ends of tasks; how many still run. */
static uint32_t reap(struct step *step)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        struct step_task *task = &step->tasks[i];
        if (task->pid > 0 && waitpid(task->pid, &task->status, WNOHANG) == task->pid) {
            task->pid = 0;
            if (step->late_ms == 0 && step->job->wait_s > 0 && !step->has_ended_first)
                step->late_ms = clock_boot_ms() + step->job->wait_s * INT64_C(1000);
            step->has_ended_first = true;
            if (!step->job->is_quiet)
                tell_end(step, task);
            if (task->status != 0 && step->job->is_killed_on_exit)
                signal_all(step, SIGTERM);
        }
        running += task->pid > 0;
    }
    end_late(step, running);
    return running;
}

static void take_signals(const struct step *step, int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        bool is_ours = info.ssi_code == SI_USER && getsid((pid_t)info.ssi_pid) == getsid(0);
        if (info.ssi_signo != SIGCHLD && is_ours)
            signal_all(step, (int)info.ssi_signo);
    }
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

/* Runs the tasks of a step that has begun. */
static int run_tasks(struct step *step, struct step_record *record, struct error *err)
{
    sigset_t before;
    _cleanup_close_ int signal_fd = open_signals(&before);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < step->count; i++)
        r = start(step, &step->tasks[i], &before, err);
    if (r < 0)
        signal_all(step, SIGTERM);
    _cleanup_(labels_clear) struct labels labels = { 0 };
    labels_init(&labels, step);
    while (reap(step) > 0 || labels_are_open(&labels)) {
        bool is_readable = labels_wait(&labels, signal_fd, step_record_fd(record), wait_ms(step, record));
        step_record_keep(record, is_readable);
        for (int signal = 0; (signal = step_record_signal(record)) != 0;)
            signal_all(step, signal);
        take_signals(step, signal_fd);
    }
    return r < 0 ? r : worst(step);
}

int step_run(struct step *step, struct error *err)
{
    _cleanup_(step_record_clear) struct step_record record = { 0 };
    int r = step_record_begin(&record, step, err);
    if (r < 0)
        return r;
    step->record = record.step;
    r = run_tasks(step, &record, err);
    step_record_end(&record, r < 0 ? 1 : r);
    step->record = NULL;
    return r;
}

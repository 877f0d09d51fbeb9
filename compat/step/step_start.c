/* SPDX-License-Identifier: MIT */
#include "compat/step/step_start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/follow/session.h"
#include "compat/step/labels.h"
#include "compat/step/step_input.h"
#include "compat/stepd/program.h"

#define NOT_FOUND 2 // status with which slurmstepd ends a task whose program does not exist

static _Noreturn void give_up(const char *what, const char *name)
{
    (void)fprintf(stderr, "slurmstepd: error: %s %s: %s\n", what, name, strerror(errno));
    _exit(NOT_FOUND);
}

/* True if the output of this task is discarded: --output=3 keeps only that of task 3. */
static bool is_silent(const struct step_task *task, const char *pattern)
{
    bool is_number = pattern[0] != '\0' && pattern[strspn(pattern, "0123456789")] == '\0';
    return strcmp(pattern, "none") == 0 || (is_number && strtoul(pattern, NULL, 10) != task->id);
}

static int open_output(const struct step *step, const struct step_task *task, const char *pattern)
{
    const struct slurm_job *job = step->job;
    bool is_appended = job->open_mode != NULL && strcmp(job->open_mode, "append") == 0;
    bool is_shared = strstr(pattern, "%t") == NULL && task->id > 0; // the first of them has emptied it
    _cleanup_free_ char *path =
        is_silent(task, pattern) ? xstrdup("/dev/null") : step_path(step, task, pattern);
    int flags = O_WRONLY | O_CREAT | O_APPEND | (is_appended || is_shared ? 0 : O_TRUNC);
    return open(path, flags | O_CLOEXEC | O_NOCTTY, 0666);
}

/* "all" and the number of the task mean srun's own output. */
static bool is_file(const struct step_task *task, const char *pattern)
{
    bool is_number = pattern[0] != '\0' && pattern[strspn(pattern, "0123456789")] == '\0';
    return strcmp(pattern, "all") != 0 && (!is_number || is_silent(task, pattern));
}

int step_open_files(const struct step *step, struct step_task *task, struct error *err)
{
    const char *output = step->job->output, *error = step->job->error;
    const char *patterns[] = { output, error != NULL ? error : output };
    for (size_t i = 0; i < LABEL_STREAMS; i++) {
        if (patterns[i] == NULL || !is_file(task, patterns[i]))
            continue;
        task->files[i] = i == 1 && error == NULL ? fcntl(task->files[0], F_DUPFD_CLOEXEC, 0)
                                                 : open_output(step, task, patterns[i]);
        if (task->files[i] < 0)
            return error_set_errno(err, -errno, "Could not open file %.200s", patterns[i]);
    }
    return 0;
}

static void redirect(const struct step *step, const struct step_task *task, const char *pattern, int target)
{
    if (pattern == NULL || !is_file(task, pattern))
        return;
    int fd = open_output(step, task, pattern);
    if (fd < 0 || dup2(fd, target) < 0)
        give_up("Could not open file", pattern);
}

static void redirect_input(const struct step *step, const struct step_task *task, int pipe_fd)
{
    enum step_input_kind kind = step_input_kind(step, task);
    _cleanup_free_ char *path =
        kind == STEP_INPUT_FILE ? step_path(step, task, step->job->input) : xstrdup("/dev/null");
    if (kind == STEP_INPUT_SAME)
        return;
    int fd = kind == STEP_INPUT_PIPE ? pipe_fd : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        give_up("Could not open file", path);
}

static void redirect_all(const struct step *step, const struct step_task *task, int input_fd)
{
    const struct slurm_job *job = step->job;
    redirect_input(step, task, input_fd);
    if (job->is_labelled) // srun writes the files
        return;
    redirect(step, task, job->output, STDOUT_FILENO);
    redirect(step, task, job->error, STDERR_FILENO);
    if (job->error == NULL && job->output != NULL && is_file(task, job->output))
        (void)dup2(STDOUT_FILENO, STDERR_FILENO);
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
    _exit(program_execute(task->command));
}

/* With --pty: becomes a process of the job on another node, which lives as long as this one. */
static _Noreturn void run_there(
    const struct step *step, const struct step_task *task, const struct strings *variables)
{
    static const struct command command = { .name = "srun" };
    struct call call = { .command = &command, .is_quiet = true };
    struct error err = { 0 };
    bool is_tty = session_is_on_terminal();
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
    if (is_tty && getenv("TERM") != NULL)
        (void)json_object_set_new(env, "TERM", json_string(getenv("TERM")));
    (void)json_object_set_new(body, "command", words);
    (void)json_object_set_new(body, "env", env);
    (void)json_object_set_new(body, "tty", json_boolean(is_tty));
    if (here != NULL)
        (void)json_object_set_new(body, "cwd", json_string(here));
    client_init(&call.client, NULL, NULL);
    const struct session_options session = { .job = path,
        .rank = step->ranks[task->node],
        .exec = body,
        .is_tty = is_tty,
        .is_input_shut = task->id > 0 };
    if (session_run(&call, &session, &status, &position, &err) < 0) {
        (void)fprintf(
            stderr, "srun: error: %s: task %u: %s\n", step->nodes.items[task->node], task->id, err.message);
        status = 1;
    }
    (void)fflush(stdout);
    _exit(status < 0 || status > 255 ? 1 : status == 127 ? NOT_FOUND : status);
}

/* The task ends with srun. Without --pty it is not in the foreground: Ctrl-C is meant for srun. */
static void leave_terminal(const struct step *step)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!step->job->is_on_terminal)
        (void)setpgid(0, 0);
}

static int open_pipes(
    const struct step *step, const struct step_task *task, int output[LABEL_STREAMS][2], int input[2])
{
    for (int i = 0; step->job->is_labelled && i < LABEL_STREAMS; i++)
        if (pipe2(output[i], O_CLOEXEC) < 0)
            return -errno;
    if (step_input_kind(step, task) != STEP_INPUT_PIPE)
        return 0;
    if (pipe2(input, O_CLOEXEC) < 0)
        return -errno;
    return fcntl(input[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int step_start(struct step *step, struct step_task *task, const sigset_t *mask, struct error *err)
{
    _cleanup_strings_ struct strings variables = { 0 };
    int output[LABEL_STREAMS][2] = { { -1, -1 }, { -1, -1 } }, input[2] = { -1, -1 };
    step_environment(step, task, &variables);
    int r = step->job->is_labelled ? step_open_files(step, task, err) : 0;
    if (r < 0)
        return r;
    r = open_pipes(step, task, output, input);
    if (r < 0)
        return error_set_errno(err, r, "cannot create a pipe");
    (void)fflush(NULL);
    task->pid = fork();
    if (task->pid == 0) {
        (void)sigprocmask(SIG_SETMASK, mask, NULL);
        leave_terminal(step);
        for (int i = 0; i < LABEL_STREAMS; i++)
            if (output[i][1] >= 0 && dup2(output[i][1], STDOUT_FILENO + i) < 0)
                give_up("dup2", "");
        redirect_all(step, task, input[0]);
        if (step->ranks[task->node] == step->here)
            run_here(step, task, &variables);
        run_there(step, task, &variables);
    }
    for (int i = 0; i < LABEL_STREAMS; i++) {
        closep(&output[i][1]);
        task->pipe_fds[i] = output[i][0];
    }
    closep(&input[0]);
    task->input_fd = input[1];
    task->is_running = task->pid > 0;
    return task->pid > 0 ? 0 : error_set_errno(err, -errno, "cannot start task %u", task->id);
}

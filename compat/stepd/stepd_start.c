/* SPDX-License-Identifier: MIT */
/* Starting the tasks: their environment, descriptors and program. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "compat/stepd/gpu_places.h"
#include "compat/stepd/oom.h"
#include "compat/stepd/program.h"
#include "compat/stepd/rlimits.h"
#include "compat/stepd/stepd_private.h"

#define NOT_FOUND 2 // status with which slurmstepd ends a task whose program does not exist

/* Variables that belong to the node: srun's belong to another node. */
static bool is_of_node(const char *entry)
{
    static const char *const names[] = { "MGPU_", "SLURM",
        "NVIDIA_VISIBLE_DEVICES=", "GPU_DEVICE_ORDINAL=", "CUDA_MPS_" };
    _cleanup_free_ char *name = xstrndup(entry, strcspn(entry, "="));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return gpu_vendor_lists(name);
}

/* Variables of the node are kept; variables of srun, of MPI and of the task are added. */
static void set_environment(const struct strings *variables, bool is_all)
{
    for (size_t i = 0; i < variables->count; i++) {
        const char *entry = variables->items[i], *equals = strchr(entry, '=');
        if (equals == NULL || equals == entry)
            continue;
        _cleanup_free_ char *name = xstrndup(entry, (size_t)(equals - entry));
        if (is_all || !is_of_node(entry) || getenv(name) == NULL)
            (void)setenv(name, equals + 1, 1);
    }
}

/* The lists of GPUs are the node's; the task gets the elements at its places. */
static void pick_gpus(const struct strings *variables, struct strings *ret)
{
    const char *places = strings_get_env(variables, STEPD_GPU_PLACES);
    for (size_t i = 0; places != NULL && i < gpu_vendors_count; i++) {
        const char *name = gpu_vendors[i].variables[0].name;
        const char *list = name != NULL ? getenv(name) : NULL;
        _cleanup_free_ char *own = list != NULL ? stepd_gpus_at(list, places) : NULL;
        if (own != NULL)
            strings_set_env(ret, name, own);
    }
}

static _Noreturn void give_up(const char *what, const char *name)
{
    (void)fprintf(stderr, "slurmstepd: error: %s %s: %s\n", what, name, strerror(errno));
    _exit(NOT_FOUND);
}

static void open_input(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        give_up("Could not open file", path);
}

static _Noreturn void run(
    const struct stepd *stepd, const struct stepd_task *task, const struct strings *mpi_env, int mpi_fd)
{
    char pid[16];
    _cleanup_strings_ struct strings gpus = { 0 };
    pick_gpus(&task->variables, &gpus);
    (void)sigprocmask(SIG_SETMASK, &stepd->mask, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    set_environment(&stepd->environment, false);
    set_environment(&task->variables, true);
    set_environment(&gpus, true);
    set_environment(mpi_env, true);
    (void)unsetenv(STEPD_GPU_PLACES);
    rlimits_forget();
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    (void)setenv("SLURM_TASK_PID", pid, 1);
    if (mpi_fd >= 0)
        (void)fcntl(mpi_fd, F_SETFD, 0);
    if (stepd->directory != NULL && chdir(stepd->directory) < 0)
        give_up("couldn't chdir to", stepd->directory);
    if (task->input_path != NULL)
        open_input(task->input_path);
    rlimits_apply(&stepd->environment);
    _exit(program_execute(task->command.items));
}

static int open_pipes(int pipes[3][2])
{
    for (int i = 0; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            return -errno;
    return 0;
}

static void close_pipes(int pipes[3][2], int side)
{
    for (int i = 0; i < 3; i++) {
        int end = i == 0 ? side : !side; // the task reads from the first one
        closep(&pipes[i][end]);
        pipes[i][end] = -1;
    }
}

static int start(struct stepd *stepd, struct stepd_task *task, struct error *err)
{
    _cleanup_strings_ struct strings mpi_env = { 0 };
    int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    _cleanup_close_ int mpi_fd = -1;
    int r = stepd->mpi != NULL ? stepd->mpi->prepare(stepd->mpi_state, task->id, &mpi_env, &mpi_fd, err) : 0;
    if (r < 0)
        return r;
    r = open_pipes(pipes);
    task->pid = r == 0 ? fork() : -1;
    if (task->pid == 0) {
        for (int i = 0; i < 3; i++)
            (void)dup2(pipes[i][i == 0 ? 0 : 1], i);
        run(stepd, task, &mpi_env, mpi_fd);
    }
    if (r == 0 && task->pid < 0)
        r = -errno;
    close_pipes(pipes, 0);
    if (r < 0) {
        close_pipes(pipes, 1);
        task->pid = 0;
        return error_set_errno(err, r, "cannot start task %u", task->id);
    }
    task->input_fd = pipes[0][1];
    task->fds[STREAM_OUTPUT] = pipes[1][0];
    task->fds[STREAM_ERRORS] = pipes[2][0];
    const int fds[] = { task->input_fd, task->fds[STREAM_OUTPUT], task->fds[STREAM_ERRORS] };
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
    return 0;
}

int stepd_start(struct stepd *stepd, struct error *err)
{
    int r = 0;
    stepd->started_ms = clock_boot_ms();
    stepd->is_started = true;
    stepd->oom_kills = oom_kills();
    for (uint32_t i = 0; r == 0 && i < stepd->count; i++)
        r = start(stepd, &stepd->tasks[i], err);
    return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * A copy of the shepherd, created in the step's cgroup, that becomes the user and stays: a few pages of
 * memory, all signals blocked, not traceable. It executes nothing before it receives the gate's byte; the end
 * of file there means that the shepherd has died, and then it records that nothing ran.
 *
 * The command is created with vfork(2), which shares memory until the exec, so its failure needs no pipe.
 * Only run_command() runs between vfork and exec.
 */
#include "shepherd/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/descriptors.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/node/daemon_priority.h"
#include "base/node/private_tmp.h"
#include "base/process.h"
#include "base/record.h"
#include "job/spec.h"
#include "shepherd/exec.h"
#include "shepherd/files.h"
#include "shepherd/gpu_wait.h"
#include "shepherd/log_limit.h"
#include "shepherd/rest.h"
#include "shepherd/user.h"

#define STATUS_COVERED offsetof(struct init_status, crc)
#define STOP_COVERED   offsetof(struct init_stop, crc)
#define STOP_OFFSET    ((off_t)(sizeof(struct init_status) + TAIL_SIZE))
#define LEFT_OFFSET    ((off_t)(STOP_OFFSET + (off_t)sizeof(struct init_stop)))

int init_write_status(int fd, struct init_status *status)
{
    status->magic = INIT_STATUS_MAGIC;
    status->crc = crc32c(0, status, STATUS_COVERED);
    ssize_t n = pwrite(fd, status, sizeof(*status), 0);
    return n == (ssize_t)sizeof(*status) ? 0 : n < 0 ? -errno : -EIO;
}

int init_read_status(int fd, struct init_status *ret)
{
    struct init_status status;
    ssize_t n = pread(fd, &status, sizeof(status), 0);
    if (n < 0)
        return -errno;
    if (n != (ssize_t)sizeof(status) || status.magic != INIT_STATUS_MAGIC ||
        status.crc != crc32c(0, &status, STATUS_COVERED))
        return -EBADMSG;
    *ret = status;
    return 0;
}

void init_read_tail(int fd, const struct init_status *status, char text[TAIL_SIZE])
{
    size_t wanted = status->tail_bytes < TAIL_SIZE ? status->tail_bytes : USAGE_TAIL_MAX;
    ssize_t n = wanted > 0 ? pread(fd, text, wanted, sizeof(*status)) : 0;
    text[n > 0 ? n : 0] = '\0';
}

int init_write_stop(int fd, struct init_stop *stop)
{
    stop->magic = INIT_STOP_MAGIC;
    stop->crc = crc32c(0, stop, STOP_COVERED);
    ssize_t n = pwrite(fd, stop, sizeof(*stop), STOP_OFFSET);
    return n == (ssize_t)sizeof(*stop) ? 0 : n < 0 ? -errno : -EIO;
}

bool init_read_stop(int fd, struct init_stop *ret)
{
    struct init_stop stop;
    if (pread(fd, &stop, sizeof(stop), STOP_OFFSET) != (ssize_t)sizeof(stop) ||
        stop.magic != INIT_STOP_MAGIC || stop.crc != crc32c(0, &stop, STOP_COVERED))
        return false;
    *ret = stop;
    return true;
}

void init_write_left(int fd, const struct roll *roll)
{
    const struct init_left left = { .magic = INIT_LEFT_MAGIC, .roll = *roll };
    (void)!pwrite(fd, &left, sizeof(left), LEFT_OFFSET);
}

void init_read_left(int fd, struct roll *ret)
{
    struct init_left left;
    *ret = (struct roll){ 0 };
    if (pread(fd, &left, sizeof(left), LEFT_OFFSET) != (ssize_t)sizeof(left) || left.magic != INIT_LEFT_MAGIC)
        return;
    *ret = left.roll;
    ret->names[sizeof(ret->names) - 1] = '\0';
}

/* --- before the gate --- */

static _Noreturn void report_failure(const struct init *init, enum launch_step step, int error)
{
    struct init_report report = { .step = step, .error = error };
    (void)send(init->channel_fd, &report, sizeof(report), MSG_NOSIGNAL);
    _exit(1);
}

/* Reports that I is ready, and passes the descriptor of the log, so that the shepherd can determine its
 * size. */
static void report_ready(const struct init *init, int log_fd, const struct place *place)
{
    struct init_report report = {
        .step = STEP_NONE, .log = (uint32_t)place->log, .cwd_error = place->cwd_error
    };
    int r = descriptor_send(init->channel_fd, &report, sizeof(report), log_fd);
    if (r < 0)
        report_failure(init, STEP_REPORT, -r);
}

/* Enters v1 groups, each in its own hierarchy, which only root may do. Writing to "tasks" moves the
 * writing thread, which is the whole process; "cgroup.procs" has the same effect, but waits for forks and
 * exits on the whole machine. */
static int enter_groups(const struct strings *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        char path[SPEC_PATH_MAX + 32];
        (void)snprintf(path, sizeof(path), "%s/tasks", groups->items[i]);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : write_all(fd, "0", 1);
        if (r < 0)
            return r;
    }
    return 0;
}

/* MPS clients reach their server through /dev/shm of the machine. */
static int enter_private_tmp(const struct init *init)
{
    const struct launch_spec *spec = init->spec;
    if (!launch_ask(spec)->private_tmp)
        return 0;
    if (spec->is_exec_step)
        return private_tmp_join(init->host_pidfd);
    return private_tmp_enter(spec->mps != NULL ? PRIVATE_TMP_FILES : PRIVATE_TMP_ALL);
}

static bool receive_gate(const struct init *init, struct init_gate *ret)
{
    ssize_t n;
    do
        n = recv(init->channel_fd, ret, sizeof(*ret), 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(*ret) && ret->magic == INIT_GATE_MAGIC;
}

/* Waits for the turn of a prepared job. No file of the user has been opened so far. */
static void await_turn(const struct init *init)
{
    const struct init_report report = { .step = STEP_NONE };
    struct init_gate gate;
    if (send(init->channel_fd, &report, sizeof(report), MSG_NOSIGNAL) < 0 || !receive_gate(init, &gate))
        _exit(1);
}

/* Does everything that can fail before the command's turn. Returns the log's descriptor. */
static int prepare(const struct init *init, struct place *place)
{
    enum launch_step step;
    (void)prctl(PR_SET_NAME, "mgpu-init");
    if (setsid() < 0)
        report_failure(init, STEP_SESSION, errno);
    int r = daemon_priority_drop();
    if (r < 0)
        report_failure(init, STEP_OOM, -r);
    r = enter_groups(&init->spec->v1_cgroups);
    if (r < 0)
        report_failure(init, STEP_ENTER, -r);
    r = enter_private_tmp(init);
    if (r < 0)
        report_failure(init, STEP_PRIVATE_TMP, -r);
    r = gpu_wait_enter(init->spec);
    if (r < 0)
        report_failure(init, STEP_EARLY, -r);
    r = user_become(init->spec, &step);
    if (r < 0)
        report_failure(init, step, -r);
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (init->spec->is_prepared)
        await_turn(init);
    int log_fd = files_open(init, place, &step);
    if (log_fd < 0)
        report_failure(init, step, -log_fd);
    return log_fd;
}

static bool is_gate_open(const struct init *init)
{
    struct init_gate gate;
    if (!receive_gate(init, &gate))
        return false;
    if (gate.port != 0) {
        launch_set_port(init->environment, gate.port);
        launch_set_port(&init->spec->gpu_env, gate.port);
    }
    return true;
}

/* --- the command --- */

/* Data for the vforked child, computed in advance. */
struct plan {
    char **argv;
    char **environment;
    const char *path;
    int stdio[3]; // stdin may be -1: unchanged
    bool is_tty;
    int request_fd; // for EXEC_FD, or -1
    int status_fd;
    struct init_status *status;
    struct log_limit limits[2]; // of output and error output
};

/* Written by the command's process itself: its identity is known before its first instruction runs, even if
 * that kills the init. */
static int note_leader(const struct plan *plan)
{
    plan->status->leader_pid = (uint32_t)getpid();
    plan->status->leader_start = process_start_time(getpid());
    return init_write_status(plan->status_fd, plan->status);
}

/* Passes what a setup shell finally executes: the command as a memory file, and this program. Returns a
 * positive errno. */
static int pass_request(int request_fd)
{
    /* dup2 on itself would leave close-on-exec set. */
    if (request_fd == EXEC_FD ? fcntl(EXEC_FD, F_SETFD, 0) < 0 : dup2(request_fd, EXEC_FD) < 0)
        return errno;
    int program_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    if (program_fd < 0)
        return errno;
    if (program_fd == PROGRAM_FD ? fcntl(PROGRAM_FD, F_SETFD, 0) < 0 : dup2(program_fd, PROGRAM_FD) < 0)
        return errno;
    return 0;
}

/* Runs in the child, on the parent's memory. Returns a positive errno. */
static int run_command(const struct plan *plan)
{
    int r = note_leader(plan);
    if (r < 0)
        return -r;
    /* With its own session, the command survives the death of the init: the kernel does not hang up a
     * command that is suspended. */
    if (setsid() < 0 || (plan->is_tty && ioctl(plan->stdio[0], TIOCSCTTY, 0) < 0))
        return errno;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (plan->stdio[fd] >= 0 && dup2(plan->stdio[fd], fd) < 0)
            return errno;
    unsigned last = ~0U, first = STDERR_FILENO + 1;
    if (plan->request_fd >= 0) {
        r = pass_request(plan->request_fd);
        if (r > 0)
            return r;
        if (close_range(first, EXEC_FD - 1, 0) < 0)
            return errno;
        first = PROGRAM_FD + 1;
    }
    if (close_range(first, last, 0) < 0)
        return errno;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    return exec_search(plan->argv, plan->environment, plan->path);
}

/* Returns the child's pid, or a negative errno. *ret_error is the positive errno with which the execution
 * failed, or 0. */
static pid_t spawn(const struct plan *plan, int *ret_error)
{
    volatile int error = 0;
    /* posix_spawn(3) can neither search with another PATH nor report the pid before the program runs. */
    // NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork)
    pid_t pid = vfork();
    if (pid == 0) {
        error = run_command(plan);
        _exit(127);
    }
    // NOLINTEND(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork)
    if (pid < 0)
        return -errno;
    *ret_error = error;
    return pid;
}

/* Waits for the next child to end. Meanwhile it keeps the output within its limit, and lets processes wait
 * that open a GPU before the job has it. All signals are blocked. */
static pid_t reap(struct log_limit *limits, int *wait_status, struct rusage *usage)
{
    static const struct timespec look = { .tv_nsec = LOG_LIMIT_LOOK_MS * 1000000L };
    sigset_t child;
    bool is_limited = limits[0].max != 0 || limits[1].max != 0;
    if (!is_limited && !gpu_wait_is_on())
        return wait4(-1, wait_status, 0, usage);
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t pid = wait4(-1, wait_status, WNOHANG, usage);
        if (pid != 0)
            return pid;
        if (gpu_wait_is_on())
            gpu_wait_serve(is_limited ? LOG_LIMIT_LOOK_MS : -1);
        else
            (void)sigtimedwait(&child, NULL, &look);
        log_limit_keep(&limits[0]);
        log_limit_keep(&limits[1]);
    }
}

/* Reaps all children until the command itself has ended; orphans of the job become our children. */
static void wait_for(pid_t leader, struct log_limit *limits, struct init_status *status)
{
    struct rusage usage = { 0 };
    for (;;) {
        pid_t pid = reap(limits, &status->wait_status, &usage);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid == leader || pid < 0)
            break;
    }
    log_limit_keep(&limits[0]);
    log_limit_keep(&limits[1]);
    status->ended_wall_ms = clock_wall_ms();
    status->ended_boot_ms = clock_boot_ms();
    status->cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                     (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    status->max_rss = (uint64_t)usage.ru_maxrss * 1024;
}

static void note_failure(struct init_status *status, enum launch_step step, int error)
{
    status->step = step;
    status->error = error;
}

static int make_plan(
    const struct init *init, const struct place *place, int log_fd, struct plan *ret, char **script)
{
    static char from_text[] = "-c";
    const struct launch_spec *spec = init->spec;
    const int files[] = { place->input_fd, log_fd, place->error_fd >= 0 ? place->error_fd : log_fd };
    ret->is_tty = spec->is_tty;
    for (size_t i = 0; i < 3; i++)
        ret->stdio[i] = init->stdio != NULL && init->stdio[i] >= 0 ? init->stdio[i] : files[i];
    log_limit_open(&ret->limits[0], log_fd, launch_ask(spec)->log_max);
    log_limit_open(&ret->limits[1], place->error_fd, launch_ask(spec)->log_max);
    ret->environment = init->environment->items;
    ret->request_fd = -1;
    ret->argv = init->command;
    ret->path = strings_get_env(&spec->env, "PATH");
    if (spec->setup == NULL)
        return 0;
    ret->request_fd = exec_request_make(&spec->gpu_env, &spec->command, &spec->image);
    if (ret->request_fd < 0)
        return ret->request_fd;
    script[2] = spec->shell;
    script[3] = from_text;
    script[4] = exec_setup_script(spec->setup);
    ret->argv = script + 2;
    return 0;
}

/* Writes the failure to the output, for users who read only that. The caller of exec gets the same sentence
 * with the exit status. */
static void print_failure(const struct init *init, const struct plan *plan, const struct init_status *status)
{
    char text[1024];
    if (init->spec->is_exec_step)
        return;
    step_describe((enum launch_step)status->step, status->error, init->spec, NULL, text, sizeof(text));
    (void)dprintf(plan->stdio[STDERR_FILENO], "mgpu: %s\n", text);
}

/* The shell has ended: determines whether the command's turn came. */
static void judge_setup(const struct init *init, const struct plan *plan, struct init_status *status)
{
    enum launch_step step = STEP_NONE;
    int error = 0;
    if (exec_request_is_reached(plan->request_fd, &step, &error)) {
        if (step != STEP_NONE) {
            note_failure(status, step, error);
            print_failure(init, plan, status);
        }
        return;
    }
    note_failure(status, STEP_SETUP, 0);
    char line[80];
    int n = WIFSIGNALED(status->wait_status)
                ? snprintf(line, sizeof(line), "mgpu: setup command ended by signal %d\n",
                      WTERMSIG(status->wait_status))
                : snprintf(line, sizeof(line), "mgpu: setup command failed with status %d\n",
                      WEXITSTATUS(status->wait_status));
    (void)write_all(plan->stdio[STDERR_FILENO], line, (size_t)n);
}

/* Writes to the output where the job runs, for users who read only that. */
static void print_place(const struct init *init, const struct place *place, int fd)
{
    char text[1024];
    if (place->cwd_error == 0)
        return;
    step_describe(STEP_CWD, place->cwd_error, init->spec, NULL, text, sizeof(text));
    (void)dprintf(fd, "mgpu: %s; running in %s\n", text, init->spec->cwd_fallback);
}

static void run(const struct init *init, const struct place *place, int log_fd, struct init_status *status)
{
    char *script[6] = { NULL };
    struct plan plan;
    plan.status_fd = init->status_fd;
    plan.status = status;
    int r = make_plan(init, place, log_fd, &plan, script);
    if (r < 0)
        return note_failure(status, STEP_SPAWN, -r);
    print_place(init, place, plan.stdio[STDERR_FILENO]);
    int error = 0;
    pid_t leader = spawn(&plan, &error);
    /* Keeps the pipe open as long as the job does, so that it has a reader. */
    if (init->stdio != NULL && !plan.is_tty)
        (void)close(plan.stdio[STDIN_FILENO]);
    if (leader < 0)
        return note_failure(status, STEP_SPAWN, (int)-leader);
    if (error != 0) {
        wait_for(leader, plan.limits, status);
        note_failure(status, init->spec->setup != NULL ? STEP_SHELL : STEP_EXEC, error);
        return print_failure(init, &plan, status);
    }
    (void)send(init->channel_fd, INIT_EXECUTED, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    wait_for(leader, plan.limits, status);
    if (plan.request_fd >= 0)
        judge_setup(init, &plan, status);
}

static off_t log_size(int log_fd)
{
    struct stat st;
    return fstat(log_fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* The output files, and their sizes before the command started. */
struct outputs {
    int log_fd, error_fd; // error_fd is -1 if both are one file
    off_t log_start, error_start;
};

/* Stores the last lines of output; written before the status that gives their length. Standard error is
 * preferred, because it says more about a failure. */
static void keep_tail(const struct init *init, const struct outputs *outputs, struct init_status *status)
{
    char text[TAIL_SIZE];
    size_t length = 0;
    if (status->step == STEP_NONE && status->wait_status == 0)
        return;
    if (outputs->error_fd >= 0)
        length = tail_read(outputs->error_fd, outputs->error_start, text);
    if (length == 0)
        length = tail_read(outputs->log_fd, outputs->log_start, text);
    if (length > 0 && pwrite(init->status_fd, text, length, sizeof(*status)) == (ssize_t)length)
        status->tail_bytes = (uint32_t)length;
}

static void keep_output(const struct init *init, const struct outputs *outputs, struct init_status *status)
{
    status->log_bytes = (uint64_t)log_size(outputs->log_fd);
    keep_tail(init, outputs, status);
}

_Noreturn void init_run(const struct init *init)
{
    struct place place = { .error_fd = -1, .input_fd = -1 };
    int log_fd = prepare(init, &place);
    report_ready(init, log_fd, &place);
    if (user_limit_files(init->spec) < 0) // it only lowers the limits
        _exit(1);
    struct init_status status = { .phase = INIT_NEVER };
    struct outputs outputs = { .log_fd = log_fd, .error_fd = place.error_fd };
    if (is_gate_open(init)) {
        status.phase = INIT_EXECUTING;
        status.started_wall_ms = clock_wall_ms();
        status.started_boot_ms = clock_boot_ms();
        outputs.log_start = log_size(log_fd);
        outputs.error_start = place.error_fd >= 0 ? log_size(place.error_fd) : 0;
        /* From here on, the command counts as possibly executed. */
        int r = init_write_status(init->status_fd, &status);
        if (r < 0)
            note_failure(&status, STEP_SPAWN, -r);
        else
            run(init, &place, log_fd, &status);
        status.phase = INIT_ENDED;
        keep_output(init, &outputs, &status);
    }
    (void)init_write_status(init->status_fd, &status);
    if (!init->is_confined && rest_end(init->status_fd)) {
        status.ended_wall_ms = clock_wall_ms();
        status.ended_boot_ms = clock_boot_ms();
        keep_output(init, &outputs, &status);
        (void)init_write_status(init->status_fd, &status);
    }
    _exit(0);
}

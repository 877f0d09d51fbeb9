/* SPDX-License-Identifier: MIT */
/*
 * One loop handles the frames of srun, and the pipes and ends of the tasks. Frames for srun are collected in
 * a buffer; while that is full, the output of tasks is not read. The kinds of MPI may add to it from threads
 * of their own.
 *
 *   FILLING ──GO──> RUNNING ──all tasks have ended──> FLUSHING ──srun has everything──> over
 *                      └── srun is gone: SIGKILL for all tasks ──────────────────────────^
 */
#include "compat/stepd/stepd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "compat/stepd/oom.h"
#include "compat/stepd/stepd_private.h"
#include "compat/stepd/usage.h"

#define READ_SIZE 65536
#define OUT_MAX   (4U << 20) // bytes for srun above which tasks wait

enum { SOURCE_IN, SOURCE_OUT, SOURCE_WAKE, SOURCE_SIGNAL, SOURCES };
enum { TASK_OUTPUT, TASK_ERRORS, TASK_INPUT, TASK_MPI, TASK_SOURCES };

void stepd_put(struct stepd *stepd, enum frame_type type, uint32_t task, const void *bytes, size_t length)
{
    static const uint64_t one = 1;
    (void)pthread_mutex_lock(&stepd->lock);
    frame_put(&stepd->out, type, task, bytes, length);
    (void)pthread_mutex_unlock(&stepd->lock);
    (void)!write(stepd->wake_fd, &one, sizeof(one));
}

static void fail(struct stepd *stepd, const struct error *err)
{
    stepd_put(stepd, FRAME_FAILED, FRAME_ALL, err->message, strlen(err->message));
}

/* --- frames of srun --- */

static void on_srun(struct stepd *stepd)
{
    uint8_t piece[READ_SIZE];
    struct error err = { 0 };
    struct frame frame;
    ssize_t n = read(stepd->in_fd, piece, sizeof(piece));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        stepd->is_srun_gone = true;
        return;
    }
    buffer_append(&stepd->in, piece, (size_t)n);
    int r = 0;
    while (r >= 0 && (r = frame_take(&stepd->in, &stepd->taken, &frame)) > 0)
        r = stepd_take(stepd, &frame, &err);
    frame_drop(&stepd->in, &stepd->taken);
    if (r >= 0)
        return;
    if (err.code == 0)
        (void)error_set(&err, r, "srun has sent an invalid frame");
    fail(stepd, &err);
    stepd_signal_tasks(stepd, FRAME_ALL, SIGKILL);
    stepd->is_started = true; // nothing else will be started
}

/* --- output and ends of tasks --- */

static void read_stream(struct stepd *stepd, struct stepd_task *task, enum stepd_stream stream)
{
    uint8_t piece[READ_SIZE];
    if (task->fds[stream] < 0)
        return;
    ssize_t n = read(task->fds[stream], piece, sizeof(piece));
    if (n > 0)
        stepd_put(stepd, stream == STREAM_OUTPUT ? FRAME_OUTPUT : FRAME_ERRORS, task->id, piece, (size_t)n);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    closep(&task->fds[stream]);
    task->fds[stream] = -1;
}

/* Reads the rest of the pipe: the task itself writes no more. */
static void drain(struct stepd *stepd, struct stepd_task *task)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        struct pollfd source = { .events = POLLIN };
        while (source.fd = task->fds[i], source.fd >= 0 && poll(&source, 1, 0) > 0)
            read_stream(stepd, task, (enum stepd_stream)i);
    }
}

static void report_end(struct stepd *stepd, const struct stepd_task *task, int status)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    bool is_lost = stepd->mpi != NULL && status != 0 && stepd->mpi->is_member(stepd->mpi_state, task->id);
    frame_add_number(&out, 4, (uint32_t)status);
    step_usage_add(&out, &task->usage);
    if (oom_is_end(status, &stepd->oom_kills))
        stepd_put(stepd, FRAME_OUT_OF_MEMORY, task->id, NULL, 0);
    stepd_put(stepd, FRAME_EXIT, task->id, out.bytes, out.length);
    if (!is_lost)
        return;
    out.length = 0;
    frame_add_number(&out, 4, 0);
    buffer_printf(&out, "task %u has ended without MPI_Finalize", task->id);
    stepd_put(stepd, FRAME_ABORT, FRAME_ALL, out.bytes, out.length);
}

static uint32_t reap(struct stepd *stepd)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        struct rusage counted;
        int status = 0;
        if (task->pid > 0 && wait4(task->pid, &status, WNOHANG, &counted) == task->pid) {
            task->pid = 0;
            stepd_close_input(task);
            usage_end(&task->usage, &counted);
            drain(stepd, task);
            report_end(stepd, task, status);
        }
        running += task->pid > 0;
    }
    return running;
}

static void sample(struct stepd *stepd)
{
    if (!stepd->is_started || clock_boot_ms() < stepd->started_ms + usage_next_ms(stepd->samples))
        return;
    stepd->samples++;
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        _cleanup_buffer_ struct buffer out = { 0 };
        if (task->pid <= 0)
            continue;
        usage_sample(&task->usage, task->pid);
        step_usage_add(&out, &task->usage);
        stepd_put(stepd, FRAME_USAGE, task->id, out.bytes, out.length);
    }
}

/* --- the loop --- */

static size_t left_to_send(struct stepd *stepd)
{
    (void)pthread_mutex_lock(&stepd->lock);
    size_t left = stepd->out.length - stepd->sent;
    (void)pthread_mutex_unlock(&stepd->lock);
    return left;
}

static void send_out(struct stepd *stepd)
{
    (void)pthread_mutex_lock(&stepd->lock);
    ssize_t n = write(stepd->out_fd, stepd->out.bytes + stepd->sent, stepd->out.length - stepd->sent);
    if (n > 0)
        stepd->sent += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        stepd->is_srun_gone = true;
    if (stepd->sent == stepd->out.length)
        stepd->sent = stepd->out.length = 0;
    (void)pthread_mutex_unlock(&stepd->lock);
}

static void fill(struct stepd *stepd, struct pollfd *sources)
{
    size_t left = left_to_send(stepd);
    sources[SOURCE_IN] = (struct pollfd){ .fd = stepd->in_fd, .events = POLLIN };
    sources[SOURCE_OUT] = (struct pollfd){ .fd = left > 0 ? stepd->out_fd : -1, .events = POLLOUT };
    sources[SOURCE_WAKE] = (struct pollfd){ .fd = stepd->wake_fd, .events = POLLIN };
    sources[SOURCE_SIGNAL] = (struct pollfd){ .fd = stepd->signal_fd, .events = POLLIN };
    for (uint32_t i = 0; i < stepd->count; i++) {
        const struct stepd_task *task = &stepd->tasks[i];
        struct pollfd *own = sources + SOURCES + i * TASK_SOURCES;
        own[TASK_OUTPUT] = (struct pollfd){ .fd = left < OUT_MAX ? task->fds[0] : -1, .events = POLLIN };
        own[TASK_ERRORS] = (struct pollfd){ .fd = left < OUT_MAX ? task->fds[1] : -1, .events = POLLIN };
        own[TASK_INPUT] =
            (struct pollfd){ .fd = stepd_unread(task) > 0 ? task->input_fd : -1, .events = POLLOUT };
        own[TASK_MPI] =
            (struct pollfd){ .fd = stepd->mpi != NULL ? stepd->mpi->fd(stepd->mpi_state, task->id) : -1,
                .events = POLLIN };
    }
}

static void serve_tasks(struct stepd *stepd, const struct pollfd *sources, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct pollfd *own = sources + SOURCES + i * TASK_SOURCES;
        struct stepd_task *task = &stepd->tasks[i];
        if (own[TASK_MPI].fd >= 0 && own[TASK_MPI].revents != 0)
            stepd->mpi->readable(stepd->mpi_state, task->id);
        if (own[TASK_OUTPUT].revents != 0)
            read_stream(stepd, task, STREAM_OUTPUT);
        if (own[TASK_ERRORS].revents != 0)
            read_stream(stepd, task, STREAM_ERRORS);
        if (own[TASK_INPUT].revents != 0)
            stepd_give_input(task);
    }
}

static int wait_ms(const struct stepd *stepd)
{
    if (!stepd->is_started)
        return -1;
    int64_t left_ms = stepd->started_ms + usage_next_ms(stepd->samples) - clock_boot_ms();
    return left_ms < 0 ? 0 : (int)left_ms;
}

static void turn(struct stepd *stepd)
{
    uint8_t drop[sizeof(struct signalfd_siginfo) * 8];
    uint32_t count = stepd->count;
    _cleanup_free_ struct pollfd *sources = xcalloc(SOURCES + (size_t)count * TASK_SOURCES, sizeof(*sources));
    fill(stepd, sources);
    if (poll(sources, SOURCES + (nfds_t)count * TASK_SOURCES, wait_ms(stepd)) < 0)
        return;
    if (sources[SOURCE_WAKE].revents != 0)
        (void)!read(stepd->wake_fd, drop, 8);
    if (sources[SOURCE_SIGNAL].revents != 0)
        (void)!read(stepd->signal_fd, drop, sizeof(drop));
    serve_tasks(stepd, sources, count);
    if (sources[SOURCE_OUT].revents != 0)
        send_out(stepd);
    if (sources[SOURCE_IN].revents != 0)
        on_srun(stepd);
    sample(stepd);
}

/* srun sends the signals for the step; signals for every process of the job also reach the tasks. */
static void open_signals(struct stepd *stepd)
{
    static const int blocked[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP };
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
        (void)sigaddset(&set, blocked[i]);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigemptyset(&stepd->mask);
    stepd->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int stepd_run(int in_fd, int out_fd)
{
    _cleanup_(stepd_clear) struct stepd stepd = {
        .in_fd = in_fd, .out_fd = out_fd, .lock = PTHREAD_MUTEX_INITIALIZER
    };
    stepd.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    open_signals(&stepd);
    (void)setsid();
    (void)fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    (void)fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
    while (!stepd.is_srun_gone) {
        uint32_t running = reap(&stepd);
        stepd_report_input(&stepd);
        if (stepd.is_started && running == 0 && left_to_send(&stepd) == 0)
            break;
        turn(&stepd);
    }
    stepd_signal_tasks(&stepd, FRAME_ALL, SIGKILL);
    return 0;
}

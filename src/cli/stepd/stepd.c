/* SPDX-License-Identifier: MIT */
/*
 * One loop around the frames of srun, the pipes of the tasks and their ends. Frames for srun are collected
 * in a buffer; while that is full, the output of tasks is not read. The kinds of MPI may add to it from
 * threads of their own.
 *
 *   FILLING ──GO──> RUNNING ──all tasks have ended──> FLUSHING ──srun has everything──> over
 *                      └── srun is gone: SIGKILL for all tasks ──────────────────────────^
 */
#include "cli/stepd/stepd.h"

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
#include "cli/stepd/oom.h"
#include "cli/stepd/stepd_private.h"
#include "cli/stepd/usage.h"

#define READ_SIZE  65536
#define OUT_MAX    (4U << 20)  // bytes for srun above which tasks wait
#define INPUT_FULL (4U << 20)  // bytes that a task has not read, above which srun is to wait
#define INPUT_MAX  (64U << 20) // that many are an error of srun, which has not waited
#define TASKS_MAX  65536U

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

static void signal_tasks(const struct stepd *stepd, uint32_t id, int number)
{
    for (uint32_t i = 0; i < stepd->count; i++)
        if (stepd->tasks[i].pid > 0 && (id == FRAME_ALL || id == stepd->tasks[i].id))
            (void)kill(stepd->tasks[i].pid, number);
}

/* --- frames of srun --- */

static int add_task(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    if (stepd->is_started || stepd->count >= TASKS_MAX || !frame_words(frame, &words) || words.count < 4)
        return error_set(err, -EBADMSG, "srun's message about a task is malformed");
    size_t n_words = strtoul(words.items[1], NULL, 10);
    if (n_words < 1 || n_words > words.count - 3)
        return error_set(err, -EBADMSG, "srun's message about a task is malformed");
    stepd->tasks = xreallocarray(stepd->tasks, stepd->count + 1, sizeof(*stepd->tasks));
    struct stepd_task *task = &stepd->tasks[stepd->count++];
    *task = (struct stepd_task){ .id = frame->task,
        .local = (uint32_t)strtoul(words.items[0], NULL, 10),
        .input_path = words.items[2][0] != '\0' ? xstrdup(words.items[2]) : NULL,
        .fds = { -1, -1 },
        .input_fd = -1 };
    for (size_t i = 3; i < words.count; i++)
        strings_add(i < 3 + n_words ? &task->command : &task->variables, words.items[i]);
    return 0;
}

static size_t unread(const struct stepd_task *task)
{
    return task->input.length - task->given;
}

static void close_input(struct stepd_task *task)
{
    closep(&task->input_fd);
    task->input_fd = -1;
    task->given = task->input.length = 0;
}

/* While it has not started, it gets nothing: then its input can only end. */
static void give_input(struct stepd_task *task)
{
    if (task->pid == 0)
        return;
    while (task->input_fd >= 0 && unread(task) > 0) {
        ssize_t n = write(task->input_fd, task->input.bytes + task->given, unread(task));
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            close_input(task); // the task reads no more
            return;
        }
        task->given += (size_t)n;
    }
    task->given = task->input.length = 0;
    if (task->is_input_over)
        close_input(task);
}

static int add_input(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        if (frame->task != FRAME_ALL && frame->task != task->id)
            continue;
        if (frame->type == FRAME_INPUT_END)
            task->is_input_over = true;
        else if (unread(task) + frame->length > INPUT_MAX)
            return error_set(err, -ENOBUFS, "task %u has not read %u MiB of its input, and srun sends more",
                task->id, INPUT_MAX >> 20);
        else if (task->input_fd >= 0) {
            if (task->given > unread(task))
                frame_drop(&task->input, &task->given);
            buffer_append(&task->input, frame->bytes, frame->length);
        }
        give_input(task);
    }
    return 0;
}

/* Other frames of srun are always taken: a task that waits for those of MPI does not read meanwhile. */
static void tell_input(struct stepd *stepd)
{
    size_t most = 0;
    for (uint32_t i = 0; i < stepd->count; i++)
        most = unread(&stepd->tasks[i]) > most ? unread(&stepd->tasks[i]) : most;
    bool is_full = most > (stepd->is_input_full ? INPUT_FULL / 2 : INPUT_FULL);
    if (is_full == stepd->is_input_full)
        return;
    stepd->is_input_full = is_full;
    stepd_put(stepd, is_full ? FRAME_INPUT_FULL : FRAME_INPUT_READY, FRAME_ALL, NULL, 0);
}

static void on_gathered(struct stepd *stepd, const struct frame *frame)
{
    size_t position = 0;
    uint64_t length = 0;
    if (stepd->mpi == NULL || !frame_number(frame, &position, 4, &length) ||
        length > frame->length - position)
        return;
    const uint8_t *key = frame->bytes + position, *data = key + length;
    stepd->mpi->gathered(
        stepd->mpi_state, key, (size_t)length, data, frame->length - position - (size_t)length);
}

static void on_modex(struct stepd *stepd, const struct frame *frame)
{
    size_t position = 0;
    uint64_t request = 0, status = 0;
    if (stepd->mpi == NULL || !frame_number(frame, &position, 8, &request))
        return;
    if (frame->type == FRAME_MODEX)
        stepd->mpi->asked(stepd->mpi_state, frame->task, request);
    else if (frame_number(frame, &position, 4, &status))
        stepd->mpi->fetched(stepd->mpi_state, request, (int)(int32_t)(uint32_t)status,
            frame->bytes + position, frame->length - position);
}

static int go(struct stepd *stepd, struct error *err)
{
    int r = stepd->is_started ? 0 : stepd_start(stepd, err);
    for (uint32_t i = 0; r == 0 && i < stepd->count; i++)
        give_input(&stepd->tasks[i]);
    return r;
}

static int take(struct stepd *stepd, const struct frame *frame, struct error *err)
{
    size_t position = 0;
    uint64_t number = 0;
    switch (frame->type) {
    case FRAME_ENVIRONMENT: (void)frame_words(frame, &stepd->environment); break;
    case FRAME_DIRECTORY: stepd->directory = xstrndup((const char *)frame->bytes, frame->length); break;
    case FRAME_MPI: return stepd_open_mpi(stepd, frame, err);
    case FRAME_TASK: return add_task(stepd, frame, err);
    case FRAME_GO: return go(stepd, err);
    case FRAME_INPUT:
    case FRAME_INPUT_END: return add_input(stepd, frame, err);
    case FRAME_SIGNAL:
        if (frame_number(frame, &position, 4, &number))
            signal_tasks(stepd, frame->task, (int)number);
        break;
    case FRAME_GATHER: on_gathered(stepd, frame); break;
    case FRAME_MODEX:
    case FRAME_MODEX_ANSWER: on_modex(stepd, frame); break;
    default: break; // of a newer srun
    }
    return 0;
}

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
        r = take(stepd, &frame, &err);
    frame_drop(&stepd->in, &stepd->taken);
    if (r >= 0)
        return;
    if (err.code == 0)
        (void)error_set(&err, r, "srun has sent what is no frame");
    fail(stepd, &err);
    signal_tasks(stepd, FRAME_ALL, SIGKILL);
    stepd->is_started = true; // nothing else will start
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

/* What is in the pipe: the task itself writes no more. */
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
            close_input(task);
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
        own[TASK_INPUT] = (struct pollfd){ .fd = unread(task) > 0 ? task->input_fd : -1, .events = POLLOUT };
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
            give_input(task);
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

/* Signals for the step are sent by srun; those that reach every process of the job reach the tasks, too. */
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

static void clear(struct stepd *stepd)
{
    if (stepd->mpi != NULL)
        stepd->mpi->close(stepd->mpi_state);
    for (uint32_t i = 0; i < stepd->count; i++) {
        struct stepd_task *task = &stepd->tasks[i];
        free(task->input_path);
        strings_clear(&task->command);
        strings_clear(&task->variables);
        buffer_clear(&task->input);
        closep(&task->input_fd);
        closep(&task->fds[STREAM_OUTPUT]);
        closep(&task->fds[STREAM_ERRORS]);
    }
    free(stepd->tasks);
    strings_clear(&stepd->environment);
    strings_clear(&stepd->setup.nodes);
    free((char *)(uintptr_t)stepd->setup.name);
    free(stepd->setup.first);
    free(stepd->directory);
    buffer_clear(&stepd->in);
    buffer_clear(&stepd->out);
    closep(&stepd->wake_fd);
    closep(&stepd->signal_fd);
    (void)pthread_mutex_destroy(&stepd->lock);
}

int stepd_run(int in_fd, int out_fd)
{
    struct stepd stepd = { .in_fd = in_fd, .out_fd = out_fd, .lock = PTHREAD_MUTEX_INITIALIZER };
    stepd.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    open_signals(&stepd);
    (void)setsid();
    (void)fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    (void)fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
    while (!stepd.is_srun_gone) {
        uint32_t running = reap(&stepd);
        tell_input(&stepd);
        if (stepd.is_started && running == 0 && left_to_send(&stepd) == 0)
            break;
        turn(&stepd);
    }
    signal_tasks(&stepd, FRAME_ALL, SIGKILL);
    clear(&stepd);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "compat/step/step_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/follow/session.h"
#include "compat/step/step_input.h"
#include "compat/step/step_start.h"
#include "compat/stepd/rlimits.h"
#include "compat/stepd/stepd.h"

#define READ_SIZE    65536
#define NODE_WAIT_MS 10000      // time for a node on which the job has not begun
#define BACKLOG_MAX  (1U << 20) // bytes that slurmstepd has not taken, above which it gets no more input
#define TEXT_MAX     400U       // length of a message of slurmstepd

extern char **environ;

/* CPUs or memory that the step requested for itself. */
static bool has_limits(const struct step *step)
{
    const struct slurm_job *job = step->job;
    return step->record != NULL && (step_is_exact(job) || job->memory > 0 || job->memory_per_cpu > 0);
}

bool step_has_peer(const struct step *step, uint32_t node)
{
    return step->ranks[node] != step->here || step->job->mpi != NULL || has_limits(step);
}

void step_peer_put(
    struct step_peer *peer, enum frame_type type, uint32_t task, const void *bytes, size_t length)
{
    if (peer->fd >= 0)
        frame_put(&peer->out, type, task, bytes, length);
}

static size_t backlog(const struct step_peer *peer)
{
    return peer->out.length - peer->sent;
}

bool step_peer_is_full(const struct step_peer *peer)
{
    return peer->fd >= 0 && (peer->is_input_full || backlog(peer) > BACKLOG_MAX);
}

/* --- its process --- */

static json_t *exec_body(const struct step *step, uint32_t node)
{
    char self[PATH_MAX] = { 0 };
    (void)!readlink("/proc/self/exe", self, sizeof(self) - 1);
    json_t *body = json_pack("{s:[s,s]}", "command", self, "slurmstepd");
    const struct slurm_job *job = step->job;
    int64_t each = job->cpus_per_task > 0 ? job->cpus_per_task : 1;
    if (step_is_exact(job))
        (void)json_object_set_new(body, "cpus", json_integer(each * step_tasks_on(step, node)));
    if (step_memory_on(step, node) > 0)
        (void)json_object_set_new(body, "memory", json_integer((json_int_t)step_memory_on(step, node)));
    return body;
}

/* A job on several nodes may have begun here, or in mgpud, but not yet on the node on which a step is to
 * start. */
static bool await_job(struct call *call, const struct step *step)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(
        API_PATH "/jobs/%" PRIu64 "/wait?states=running,stopping,done,failed,cancelled", step->job_id);
    call->client.answer_ms = CLIENT_WAITS_FOR_EVER;
    return client_get(&call->client, path, &job, NULL) == 0 &&
           (field_is(job, "state", "running") || field_is(job, "state", "stopping"));
}

/* Becomes a process of the job on the node, which lives as long as this one. */
static _Noreturn void connect_with(const struct step *step, uint32_t node)
{
    static const struct command command = { .name = "srun" };
    struct call call = { .command = &command, .is_quiet = true };
    struct error err = { 0 };
    int status = -1;
    uint64_t position = 0;
    _cleanup_free_ char *path = xasprintf("%" PRIu64, step->job_id);
    _cleanup_json_ json_t *body = exec_body(step, node);
    client_init(&call.client, NULL, NULL);
    const struct session_options session = { .job = path, .rank = step->ranks[node], .exec = body };
    int64_t until_ms = clock_boot_ms() + NODE_WAIT_MS;
    int delay_ms = 0, r;
    while ((r = session_run(&call, &session, &status, &position, &err)) == -EALREADY &&
           clock_boot_ms() < until_ms && await_job(&call, step))
        client_back_off(&delay_ms);
    if (r < 0)
        (void)fprintf(stderr, "srun: error: %s: %s\n", step->nodes.items[node], err.message);
    _exit(status == 0 ? 0 : 1);
}

static _Noreturn void run_peer(const struct step *step, uint32_t node, int fd, const sigset_t *mask)
{
    bool is_here = step->ranks[node] == step->here && !has_limits(step);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)setpgid(0, 0); // Ctrl-C is meant for srun
    (void)prctl(PR_SET_PDEATHSIG, is_here ? SIGTERM : SIGKILL);
    if (is_here)
        _exit(stepd_run(fd, fd));
    /* Signals for all processes of the job are not meant for the connection, which lasts as long as the
     * tasks. */
    static const int others[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        (void)signal(others[i], SIG_IGN);
    if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(1);
    (void)close(fd);
    connect_with(step, node);
}

/* --- what it is told at the start --- */

/* With srun's limits, which a process of the job on the same node would inherit. */
static void put_environment(struct step_peer *peer)
{
    _cleanup_strings_ struct strings all = { 0 };
    for (char **entry = environ; *entry != NULL; entry++)
        strings_add(&all, *entry);
    rlimits_collect(&all);
    frame_put_words(&peer->out, FRAME_ENVIRONMENT, FRAME_ALL, &all);
}

static void put_directory(struct step_peer *peer, const struct step *step)
{
    _cleanup_free_ char *here = getcwd(NULL, 0);
    const char *directory = step->job->submit.directory != NULL ? step->job->submit.directory : here;
    if (directory != NULL)
        step_peer_put(peer, FRAME_DIRECTORY, FRAME_ALL, directory, strlen(directory));
}

static void put_mpi(struct step_peer *peer, const struct step *step)
{
    _cleanup_strings_ struct strings words = { 0 };
    if (step->job->mpi == NULL)
        return;
    strings_add(&words, step->job->mpi);
    strings_take(&words, xasprintf("%" PRIu64 ".%" PRId64, step->job_id, step_id(step)));
    strings_take(&words, xasprintf("%" PRIu32, peer->node));
    for (uint32_t i = 0; i < step->nodes.count; i++) {
        strings_add(&words, step->nodes.items[i]);
        strings_take(&words, xasprintf("%" PRIu32, step_tasks_on(step, i)));
    }
    frame_put_words(&peer->out, FRAME_MPI, FRAME_ALL, &words);
}

/* The file that the task reads; "": input sent by srun. */
static char *input_path(const struct step *step, const struct step_task *task)
{
    bool is_file = step_input_kind(step, task) == STEP_INPUT_FILE;
    return is_file ? step_path(step, task, step->job->input) : xstrdup("");
}

static void put_task(struct step_peer *peer, const struct step *step, const struct step_task *task)
{
    _cleanup_strings_ struct strings words = { 0 }, variables = { 0 };
    size_t count = 0;
    while (task->command[count] != NULL)
        count++;
    strings_take(&words, xasprintf("%" PRIu32, task->local));
    strings_take(&words, xasprintf("%zu", count));
    strings_take(&words, input_path(step, task));
    for (size_t i = 0; i < count; i++)
        strings_add(&words, task->command[i]);
    step_environment(step, task, &variables);
    for (size_t i = 0; i < variables.count; i++)
        strings_add(&words, variables.items[i]);
    frame_put_words(&peer->out, FRAME_TASK, task->id, &words);
}

int step_peer_start(struct step *step, uint32_t node, const sigset_t *mask, struct error *err)
{
    struct step_peer *peer = &step->peers[node];
    int fds[2], r = 0;
    for (uint32_t i = 0; r == 0 && i < step->count; i++)
        if (step->tasks[i].node == node)
            r = step_open_files(step, &step->tasks[i], err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    (void)fflush(NULL);
    peer->pid = fork();
    if (peer->pid == 0)
        run_peer(step, node, fds[1], mask);
    (void)close(fds[1]);
    peer->fd = fds[0];
    if (peer->pid < 0) {
        peer->pid = 0;
        return error_set_errno(err, -errno, "cannot start a process");
    }
    (void)fcntl(peer->fd, F_SETFL, O_NONBLOCK);
    put_environment(peer);
    put_directory(peer, step);
    put_mpi(peer, step);
    for (uint32_t i = 0; i < step->count; i++) {
        struct step_task *task = &step->tasks[i];
        if (task->node != node)
            continue;
        put_task(peer, step, task);
        task->is_running = true;
        if (step_input_kind(step, task) == STEP_INPUT_NONE)
            step_peer_put(peer, FRAME_INPUT_END, task->id, NULL, 0);
    }
    step_peer_put(peer, FRAME_GO, FRAME_ALL, NULL, 0);
    return 0;
}

/* --- what it says --- */

static void print_output(struct step_task *task, const struct frame *frame, struct labels *labels)
{
    int stream = frame->type == FRAME_ERRORS;
    if (labels->is_on)
        labels_add(labels, task->id, stream, frame->bytes, frame->length);
    else if (task->files[stream] >= 0)
        (void)write_all(task->files[stream], frame->bytes, frame->length);
    else
        (void)write_all(stream ? STDERR_FILENO : STDOUT_FILENO, frame->bytes, frame->length);
}

static void on_exit_of(struct step *step, struct step_task *task, const struct frame *frame)
{
    size_t position = 0;
    uint64_t status = 0;
    if (!task->is_running || !frame_number(frame, &position, 4, &status))
        return;
    (void)step_usage_read(frame, &position, &task->usage);
    step_task_end(step, task, (int)(uint32_t)status);
}

static void on_abort(struct step *step, const struct step_peer *from, const struct frame *frame)
{
    size_t position = 0;
    uint64_t code = 0;
    if (step->is_ending || !frame_number(frame, &position, 4, &code))
        return;
    _cleanup_free_ char *raw = xstrndup((const char *)frame->bytes + position, frame->length - position);
    _cleanup_free_ char *text = text_escape(raw, TEXT_MAX);
    (void)fprintf(stderr, "srun: error: %s: %s\n", step->nodes.items[from->node], text);
    step_terminate(step);
}

static void on_failed(struct step *step, const struct step_peer *from, const struct frame *frame)
{
    _cleanup_free_ char *raw = xstrndup((const char *)frame->bytes, frame->length);
    _cleanup_free_ char *text = text_escape(raw, TEXT_MAX);
    (void)fprintf(stderr, "srun: error: %s: %s\n", step->nodes.items[from->node], text);
    step_terminate(step);
}

static void take(struct step *step, struct step_peer *from, const struct frame *frame, struct labels *labels)
{
    struct step_task *task = frame->task < step->count ? &step->tasks[frame->task] : NULL;
    size_t position = 0;
    if (task != NULL && task->node != from->node && frame->type != FRAME_MODEX)
        return;
    switch (frame->type) {
    case FRAME_OUTPUT:
    case FRAME_ERRORS:
        if (task != NULL)
            print_output(task, frame, labels);
        break;
    case FRAME_EXIT:
        if (task != NULL)
            on_exit_of(step, task, frame);
        break;
    case FRAME_USAGE:
        if (task != NULL)
            (void)step_usage_read(frame, &position, &task->usage);
        break;
    case FRAME_OUT_OF_MEMORY:
        if (task != NULL)
            task->is_out_of_memory = true;
        break;
    case FRAME_INPUT_FULL:
    case FRAME_INPUT_READY: from->is_input_full = frame->type == FRAME_INPUT_FULL; break;
    case FRAME_FAILED: on_failed(step, from, frame); break;
    case FRAME_ABORT: on_abort(step, from, frame); break;
    case FRAME_GATHER: step_gather(step, from, frame); break;
    case FRAME_MODEX:
    case FRAME_MODEX_ANSWER: step_modex(step, from, frame); break;
    default: break;
    }
}

/* Without slurmstepd, the state of its tasks is unknown. */
static void on_lost(struct step *step, struct step_peer *peer)
{
    closep(&peer->fd);
    peer->fd = -1;
    for (uint32_t i = 0; i < step->count; i++)
        if (step->tasks[i].node == peer->node && step->tasks[i].is_running)
            step_task_end(step, &step->tasks[i], SIGKILL);
}

static void read_peer(struct step *step, struct step_peer *peer, struct labels *labels)
{
    uint8_t piece[READ_SIZE];
    struct frame frame;
    ssize_t n = read(peer->fd, piece, sizeof(piece));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    int r = n <= 0 ? -EPIPE : 0;
    if (n > 0)
        buffer_append(&peer->in, piece, (size_t)n);
    while (r >= 0 && (r = frame_take(&peer->in, &peer->taken, &frame)) > 0)
        take(step, peer, &frame, labels);
    frame_drop(&peer->in, &peer->taken);
    if (r < 0)
        on_lost(step, peer);
}

static void write_peer(struct step_peer *peer)
{
    while (backlog(peer) > 0) {
        ssize_t n = send(peer->fd, peer->out.bytes + peer->sent, backlog(peer), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            return; // a lost connection is detected by reading
        peer->sent += (size_t)n;
    }
    peer->sent = peer->out.length = 0;
}

struct pollfd step_peer_source(const struct step_peer *peer)
{
    short events = backlog(peer) > 0 ? POLLIN | POLLOUT : POLLIN;
    return (struct pollfd){ .fd = peer->fd, .events = events };
}

void step_peer_serve(struct step *step, struct step_peer *peer, short events, struct labels *labels)
{
    if (peer->fd >= 0 && (events & POLLOUT) != 0)
        write_peer(peer);
    if (peer->fd >= 0 && (events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_peer(step, peer, labels);
}

void step_peer_clear(struct step_peer *peer)
{
    closep(&peer->fd);
    peer->fd = -1;
    buffer_clear(&peer->in);
    buffer_clear(&peer->out);
}

/* SPDX-License-Identifier: MIT */
/*
 * The spec of an exec step is derived from that of the job's own step: same user, groups, limits, GPUs and
 * environment, and the same cgroup, so it is subject to the same restrictions and ends with the job. The
 * controller only knows its stream.
 *
 *   STAGED ──shepherd reports "started"──> VISITED (the terminal has the stream) ──"exit"──> removed
 *      └─────────"exit": it could not start, the stream gets the error ─────────────────────────^
 *
 * A client that has given the exec step a key can lose its connection and return (REJOIN_STEP): the terminal
 * gets the new stream, or the exec step keeps it until it is VISITED.
 */
#include "agent/attach/exec_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attach/exec_waiting.h"
#include "agent/attach/terminal_visit.h"
#include "agent/host/child.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "job/launch.h"

#define STEPS_MAX 1000000U // of one attempt

struct exec_step {
    struct exec_steps *exec_steps;
    struct spool_id id;
    uint32_t uid;
    uint64_t token, key; // token of its attempt; key of its client, 0: none
    uint64_t stream;
    int stream_fd; // -1: the terminal has it, or the exec step was started by an earlier agent
    struct terminal_size size;
    uint64_t position; // position in the output from which its client continues
    struct child *child;
    struct exec_step *next, **where;
};

struct exec_steps {
    struct event_base *base;
    struct launcher *launcher;
    const char *link_path;
    struct exec_step *list;
    size_t count;
    struct exec_waiting *waiting; // for the start of their job here
};

struct exec_steps *exec_steps_new(struct event_base *base, struct launcher *launcher, const char *link_path)
{
    struct exec_steps *exec_steps = xcalloc(1, sizeof(*exec_steps));
    *exec_steps = (struct exec_steps){ .base = base, .launcher = launcher, .link_path = link_path };
    return exec_steps;
}

static void exec_step_free(struct exec_step *exec_step)
{
    *exec_step->where = exec_step->next;
    if (exec_step->next != NULL)
        exec_step->next->where = exec_step->where;
    exec_step->exec_steps->count--;
    child_free(exec_step->child);
    closep(&exec_step->stream_fd);
    free(exec_step);
}

void exec_steps_free(struct exec_steps *exec_steps)
{
    if (exec_steps == NULL)
        return;
    while (exec_steps->list != NULL)
        exec_step_free(exec_steps->list);
    exec_waiting_free(&exec_steps->waiting);
    free(exec_steps);
}

static struct exec_step *exec_step_add(
    struct exec_steps *exec_steps, const struct spool_id *id, const struct launch_spec *spec)
{
    struct exec_step *exec_step = xcalloc(1, sizeof(*exec_step));
    *exec_step = (struct exec_step){ .exec_steps = exec_steps,
        .id = *id,
        .uid = spec->uid,
        .token = spec->token,
        .key = spec->exec_key,
        .stream_fd = -1,
        .where = &exec_steps->list,
        .next = exec_steps->list };
    if (exec_step->next != NULL)
        exec_step->next->where = &exec_step->next;
    exec_steps->list = exec_step;
    exec_steps->count++;
    return exec_step;
}

static struct exec_step *find(const struct exec_steps *exec_steps, const struct spool_id *id)
{
    struct exec_step *exec_step = exec_steps->list;
    while (exec_step != NULL && !spool_id_equal(&exec_step->id, id))
        exec_step = exec_step->next;
    return exec_step;
}

/* The exec step that the client with this key has started in this attempt, or NULL. */
static struct exec_step *find_key(
    const struct exec_steps *exec_steps, const struct spool_id *host, uint64_t token, uint64_t key)
{
    struct exec_step *exec_step = exec_steps->list;
    for (; key != 0 && exec_step != NULL; exec_step = exec_step->next) {
        struct spool_id id = exec_step->id;
        id.step = 0;
        if (exec_step->key == key && exec_step->token == token && spool_id_equal(&id, host))
            return exec_step;
    }
    return NULL;
}

static void discard(const struct exec_steps *exec_steps, const struct spool_id *id)
{
    int r = launcher_discard(exec_steps->launcher, id);
    if (r < 0)
        log_job(LOG_WARNING, id->job, "cannot remove the files of its step %u: %s", id->step, strerror(-r));
}

/* --- the stream of one that could not start --- */

static void send_end(const struct exec_step *exec_step, int32_t code, const char *text)
{
    _cleanup_buffer_ struct buffer frame = { 0 };
    uint8_t head[TERMINAL_HEAD_SIZE + 4];
    size_t length = strnlen(text, TERMINAL_TEXT_MAX);
    if (exec_step->stream_fd < 0 || terminal_visit_say(exec_step->stream_fd, exec_step->stream, NULL) < 0)
        return;
    terminal_head(head, TERMINAL_END, 4 + length);
    terminal_put(head + TERMINAL_HEAD_SIZE, 4, (uint32_t)code);
    buffer_append(&frame, head, sizeof(head));
    buffer_append(&frame, text, length);
    (void)send(exec_step->stream_fd, frame.bytes, frame.length, MSG_NOSIGNAL);
}

static void send_exit(const struct exec_step *exec_step, int dirfd)
{
    struct launch_exit record;
    if (file_read_record(dirfd, SPOOL_EXIT, &launch_exit_record, &record, NULL) < 0) {
        send_end(exec_step, 125, "the process could not be started");
        return;
    }
    send_end(exec_step, record.exit_code, record.text != NULL ? record.text : "");
    record_clear(&launch_exit_record, &record);
}

/* --- its life --- */

static void bring(struct exec_step *exec_step)
{
    const struct terminal_visit visit = {
        .magic = TERMINAL_VISIT_MAGIC, .size = exec_step->size, .position = exec_step->position
    };
    int r = terminal_visit_say(exec_step->stream_fd, exec_step->stream, NULL);
    if (r == 0)
        r = terminal_visit_bring(
            launcher_spool_fd(exec_step->exec_steps->launcher), &exec_step->id, &visit, exec_step->stream_fd);
    if (r < 0)
        log_job(LOG_WARNING, exec_step->id.job, "cannot pass input to its step %u: %s", exec_step->id.step,
            strerror(-r));
    closep(&exec_step->stream_fd);
}

/* Its client has a new connection. */
static void join(struct exec_step *exec_step, uint64_t stream, uint64_t position, struct terminal_size size,
    int *stream_fd)
{
    _cleanup_close_ int dirfd = launcher_open_entry(exec_step->exec_steps->launcher, &exec_step->id);
    closep(&exec_step->stream_fd);
    exec_step->stream_fd = take_fd(stream_fd);
    exec_step->stream = stream;
    exec_step->position = position;
    exec_step->size = size;
    if (dirfd >= 0 && faccessat(dirfd, SPOOL_STARTED, F_OK, 0) == 0)
        bring(exec_step);
}

static void end(struct exec_step *exec_step, int dirfd)
{
    struct exec_steps *exec_steps = exec_step->exec_steps;
    struct spool_id id = exec_step->id;
    if (exec_step->stream_fd >= 0)
        send_exit(exec_step, dirfd);
    exec_step_free(exec_step);
    discard(exec_steps, &id);
}

static bool has_file(int dirfd, const char *name)
{
    return faccessat(dirfd, name, F_OK, 0) == 0;
}

/* Its shepherd ended without an exit record: its processes have lost their terminal, and end with the job. */
static void on_shepherd_end(void *arg, int status)
{
    struct exec_step *exec_step = arg;
    exec_step->child = NULL;
    _cleanup_close_ int dirfd = launcher_open_entry(exec_step->exec_steps->launcher, &exec_step->id);
    end(exec_step, dirfd);
}

void exec_steps_find(struct exec_steps *exec_steps, const struct spool_id *id)
{
    struct launch_started started;
    struct launch_spec spec = { 0 };
    _cleanup_close_ int dirfd = launcher_open_entry(exec_steps->launcher, id);
    if (dirfd < 0)
        return;
    if (!spool_is_alive(dirfd)) {
        discard(exec_steps, id);
        return;
    }
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        return;
    int pidfd = process_open((pid_t)started.shepherd_pid, started.shepherd_start);
    record_clear(&launch_started_record, &started);
    if (pidfd < 0)
        return;
    (void)file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL);
    struct exec_step *exec_step = exec_step_add(exec_steps, id, &spec);
    record_clear(&launch_spec_record, &spec);
    exec_step->child = child_watch(exec_steps->base, pidfd, on_shepherd_end, exec_step);
}

/* --- start --- */

static void clear_spec(struct launch_spec *spec)
{
    record_clear(&launch_spec_record, spec);
}

/* The rendezvous port of the job was not known yet when its spec was written. */
static void find_port(int dirfd, struct launch_spec *spec)
{
    struct launch_started started;
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        return;
    if (started.port != 0)
        launch_set_port(&spec->gpu_env, started.port);
    record_clear(&launch_started_record, &started);
}

/* Reads the spec of a step that is running; fails for any other. */
static int read_host(const struct exec_steps *exec_steps, const struct message_open_step *request,
    struct launch_spec *ret, struct error *err)
{
    struct spool_id host = { request->id.job, request->id.attempt, 0, request->id.rank };
    _cleanup_close_ int dirfd = launcher_open_entry(exec_steps->launcher, &host);
    bool is_running = dirfd >= 0 && has_file(dirfd, SPOOL_STARTED) && !has_file(dirfd, SPOOL_EXIT);
    if (!is_running || file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, ret, NULL) < 0)
        return error_set(err, -EALREADY, "job %" PRIu64 " is no longer running", request->id.job);
    if (ret->token == request->token) {
        find_port(dirfd, ret);
        return 0;
    }
    record_clear(&launch_spec_record, ret);
    return error_set(err, -EALREADY, "another job %" PRIu64 " runs here", request->id.job);
}

/* The attempt is here, but its gate has not opened yet. */
static bool is_starting(const struct exec_steps *exec_steps, const struct spool_id *id)
{
    _cleanup_close_ int dirfd = launcher_open_entry(exec_steps->launcher, id);
    return dirfd >= 0 && has_file(dirfd, SPOOL_SPEC) && !has_file(dirfd, SPOOL_STARTED) &&
           !has_file(dirfd, SPOOL_EXIT);
}

static void replace_text(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
}

/* An exec step runs beside the container, in the same cgroup. */
static void leave_container(struct launch_spec *spec)
{
    for (size_t i = 0; i < spec->image.count; i++)
        record_clear(&launch_image_record, (struct launch_image *)spec->image.items + i);
    free(spec->image.items);
    spec->image = (struct record_list){ 0 };
}

/* The variables about GPUs are set last, because a request may set them too. */
static void set_env(struct launch_spec *spec, const struct strings *wanted)
{
    strings_merge_env(&spec->env, wanted);
    for (size_t i = 0; i < spec->gpu_env.count; i++) {
        const char *entry = spec->gpu_env.items[i];
        _cleanup_free_ char *name = xstrndup(entry, strcspn(entry, "="));
        if (strings_get_env(wanted, name) != NULL)
            strings_set_env(&spec->gpu_env, name, strings_get_env(&spec->env, name));
    }
}

/* Changes the job's spec where the exec step differs. */
static void adapt(struct launch_spec *spec, const struct message_open_step *request)
{
    static const char null_device[] = "/dev/null";
    char number[16];
    strings_clear(&spec->command);
    strings_copy(&spec->command, &request->command);
    set_env(spec, &request->env);
    if (request->cwd != NULL) {
        replace_text(&spec->cwd, request->cwd);
        replace_text(&spec->cwd_fallback, NULL);
        strings_set_env(&spec->env, "PWD", request->cwd);
    }
    leave_container(spec);
    replace_text(&spec->output, null_device);
    replace_text(&spec->output_fallback, NULL);
    replace_text(&spec->error, NULL);
    replace_text(&spec->input, NULL);
    spec->is_input_sent = false;
    spec->is_truncated = false;
    replace_text(&spec->exit_copy_dir, NULL);
    (void)snprintf(number, sizeof(number), "%u", spec->id.step);
    strings_set_env(&spec->gpu_env, "MGPU_STEP", number);
    spec->is_output_default = false;
    spec->is_exec_step = true;
    spec->exec_key = request->key;
    spec->is_gated = spec->is_prepared = false;
    spec->is_early = false;  // it does not wait: the filter refuses access until the job has its GPUs
    spec->time_limit_ms = 0; // it ends with the job
    spec->files_ms = 0;      // a user is waiting for it
    spec->lease_ms = 0;
    spec->warn_signal = 0;
    replace_text(&spec->say_pipe, NULL); // its status reports go to the job's pipe
    spec->is_tty = request->is_tty;
    spec->tty_rows = request->rows;
    spec->tty_columns = request->columns;
}

/* Creates a directory with the next free step number. */
static int make_entry(struct exec_steps *exec_steps, struct spool_id *id, struct error *err)
{
    char name[SPOOL_NAME_SIZE];
    for (id->step = 1; id->step < STEPS_MAX; id->step++) {
        spool_name(id, name);
        if (mkdirat(launcher_spool_fd(exec_steps->launcher), name, 0700) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return error_set_errno(err, -errno, "cannot create a spool directory for job %" PRIu64, id->job);
}

/* Applies separate limits, which are below those of the job. */
static int limit(const struct exec_steps *exec_steps, const struct spool_id *id,
    const struct message_open_step *request, struct launch_spec *spec, struct error *err)
{
    bool has_memory =
        request->memory > 0 && (spec->memory_limit == 0 || request->memory < spec->memory_limit);
    bool has_cpus = request->cpus > 0 && request->cpus <= ASK_CPUS_MAX;
    uint64_t memory = spec->memory_limit;
    uint32_t cpu_milli = spec->cpu_milli;
    spec->memory_limit = has_memory ? request->memory : 0;
    spec->cpu_milli = has_cpus ? request->cpus * 1000U : 0;
    int r = launcher_limit_step(exec_steps->launcher, id, spec, err);
    if (!has_memory)
        spec->memory_limit = memory;
    if (!has_cpus)
        spec->cpu_milli = cpu_milli;
    return r;
}

/* `spec` is the job's, and becomes the exec step's. */
static int fill_entry(struct exec_steps *exec_steps, const struct message_open_step *request,
    const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    _cleanup_close_ int dirfd = launcher_open_entry(exec_steps->launcher, id);
    if (dirfd < 0)
        return error_set_errno(err, dirfd, "cannot open a spool directory of job %" PRIu64, id->job);
    spec->id.step = id->step;
    adapt(spec, request);
    int r = limit(exec_steps, id, request, spec, err);
    if (r < 0)
        return r;
    r = file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, spec, false);
    return r < 0 ? error_set_errno(err, r, "cannot write the spool of job %" PRIu64, id->job) : 0;
}

/* Counts running exec steps: their terminals are processes of the user, who can stop them. */
static int check_room(const struct exec_steps *exec_steps, uint32_t uid, struct error *err)
{
    size_t of_user = 0;
    for (const struct exec_step *exec_step = exec_steps->list; exec_step != NULL; exec_step = exec_step->next)
        of_user += exec_step->uid == uid;
    if (exec_steps->count >= EXEC_STEPS_MAX)
        return error_set(
            err, -EBUSY, "the node has reached its limit of additional processes; try again later");
    return of_user < EXEC_STEPS_USER_MAX
               ? 0
               : error_set(err, -EBUSY,
                     "you have %zu additional processes on this node, the limit of one user", of_user);
}

/* `spec` is the host's, and becomes the exec step's. On failure nothing of the exec step is left. */
static int stage(struct exec_steps *exec_steps, const struct message_open_step *request,
    struct launch_spec *spec, struct spool_id *id, struct error *err)
{
    int r = check_room(exec_steps, spec->uid, err);
    if (r == 0)
        r = make_entry(exec_steps, id, err);
    if (r < 0)
        return r;
    r = fill_entry(exec_steps, request, id, spec, err);
    if (r < 0)
        discard(exec_steps, id);
    return r;
}

static int start(
    struct exec_steps *exec_steps, const struct message_open_step *request, int *stream_fd, struct error *err)
{
    struct spool_id id = { .job = request->id.job, .attempt = request->id.attempt, .rank = request->id.rank };
    struct launcher_process shepherd;
    _cleanup_(clear_spec) struct launch_spec spec = { 0 };
    int r = read_host(exec_steps, request, &spec, err);
    if (r == 0)
        r = stage(exec_steps, request, &spec, &id, err);
    if (r < 0)
        return r;
    r = launcher_start(exec_steps->launcher, &id, &shepherd, err);
    if (r < 0) {
        discard(exec_steps, &id);
        return r;
    }
    struct exec_step *exec_step = exec_step_add(exec_steps, &id, &spec);
    exec_step->stream = request->stream;
    exec_step->stream_fd = take_fd(stream_fd);
    exec_step->size = (struct terminal_size){ (uint16_t)request->rows, (uint16_t)request->columns };
    exec_step->child = child_watch(exec_steps->base, shepherd.end_fd, on_shepherd_end, exec_step);
    return 0;
}

void exec_steps_open(struct exec_steps *exec_steps, const struct message_open_step *request)
{
    struct error err = { 0 };
    struct exec_step *same = find_key(exec_steps, &request->id, request->token, request->key);
    if (is_starting(exec_steps, &request->id)) {
        exec_waiting_add(&exec_steps->waiting, request, clock_boot_ms());
        return;
    }
    _cleanup_close_ int fd = terminal_visit_dial(exec_steps->link_path);
    if (fd < 0)
        log_warning("cannot connect to the controller for a process: %s", strerror(-fd));
    else if (same != NULL)
        join(same, request->stream, 0,
            (struct terminal_size){ (uint16_t)request->rows, (uint16_t)request->columns }, &fd);
    else if (start(exec_steps, request, &fd, &err) < 0)
        (void)terminal_visit_say(fd, request->stream, &err);
}

/* --- changes of state --- */

/* Of the exec steps that waited for the start of this job. */
static void open_waiting(struct exec_steps *exec_steps, const struct spool_id *id)
{
    struct message_open_step request;
    if (exec_steps->waiting == NULL || is_starting(exec_steps, id))
        return;
    while (exec_waiting_take(&exec_steps->waiting, id, clock_boot_ms(), &request)) {
        exec_steps_open(exec_steps, &request);
        record_clear(&message_open_step_record, &request);
    }
}

void exec_steps_reconcile(struct exec_steps *exec_steps, const struct spool_id *id)
{
    if (id->step == 0) {
        open_waiting(exec_steps, id);
        return;
    }
    struct exec_step *exec_step = find(exec_steps, id);
    _cleanup_close_ int dirfd = launcher_open_entry(exec_steps->launcher, id);
    if (dirfd < 0)
        return;
    if (exec_step == NULL) {
        if (has_file(dirfd, SPOOL_EXIT))
            discard(exec_steps, id);
        return;
    }
    if (exec_step->stream_fd >= 0 && has_file(dirfd, SPOOL_STARTED))
        bring(exec_step);
    if (has_file(dirfd, SPOOL_EXIT))
        end(exec_step, dirfd);
}

/* --- clients that return --- */

static void send_farewell(const struct exec_step *exec_step)
{
    const struct terminal_visit farewell = { .magic = TERMINAL_FAREWELL_MAGIC };
    /* If the terminal no longer exists, no client waits for it. */
    (void)terminal_visit_bring(
        launcher_spool_fd(exec_step->exec_steps->launcher), &exec_step->id, &farewell, -1);
}

void exec_steps_rejoin(struct exec_steps *exec_steps, const struct message_rejoin_step *request)
{
    struct error err = { 0 };
    struct exec_step *exec_step = find_key(exec_steps, &request->id, request->token, request->key);
    if (request->is_farewell) {
        if (exec_step != NULL)
            send_farewell(exec_step);
        return;
    }
    _cleanup_close_ int fd = terminal_visit_dial(exec_steps->link_path);
    if (fd < 0) {
        log_warning("cannot connect to the controller for a process: %s", strerror(-fd));
        return;
    }
    if (exec_step != NULL) {
        join(exec_step, request->stream, request->position,
            (struct terminal_size){ (uint16_t)request->rows, (uint16_t)request->columns }, &fd);
        return;
    }
    (void)error_set(&err, -ENOENT, "the process in job %" PRIu64 " has ended", request->id.job);
    (void)terminal_visit_say(fd, request->stream, &err);
}

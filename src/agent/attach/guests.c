/* SPDX-License-Identifier: MIT */
/*
 * A guest is made from the spec of the job's own step: same user, groups, limits, GPUs and environment, and
 * born in the same cgroup, so that whatever holds for the job holds for it and the end of the job is its end.
 * The controller knows nothing of it but the stream.
 *
 *   STAGED ──shepherd says "started"──> VISITED (the stream is the terminal's) ──"exit"──> removed
 *      └─────────"exit": it could not start, the stream is told why ────────────────────────^
 */
#include "agent/attach/guests.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/attach/terminal_visit.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "job/launch.h"

#define STEPS_MAX 1000000U // of one attempt

struct guest {
    struct guests *guests;
    struct spool_id id;
    uint64_t stream;
    int stream_fd; // -1: it is the terminal's, or the guest is an earlier agent's
    struct terminal_size size;
    struct child *child;
    struct guest *next, **where;
};

struct guests {
    struct event_base *base;
    struct launcher *launcher;
    const char *link_path;
    struct guest *list;
    size_t count;
};

struct guests *guests_new(struct event_base *base, struct launcher *launcher, const char *link_path)
{
    struct guests *guests = xcalloc(1, sizeof(*guests));
    *guests = (struct guests){ .base = base, .launcher = launcher, .link_path = link_path };
    return guests;
}

static void guest_free(struct guest *guest)
{
    *guest->where = guest->next;
    if (guest->next != NULL)
        guest->next->where = guest->where;
    guest->guests->count--;
    child_free(guest->child);
    closep(&guest->stream_fd);
    free(guest);
}

void guests_free(struct guests *guests)
{
    if (guests == NULL)
        return;
    while (guests->list != NULL)
        guest_free(guests->list);
    free(guests);
}

static struct guest *guest_add(struct guests *guests, const struct spool_id *id)
{
    struct guest *guest = xcalloc(1, sizeof(*guest));
    *guest = (struct guest){
        .guests = guests, .id = *id, .stream_fd = -1, .where = &guests->list, .next = guests->list
    };
    if (guest->next != NULL)
        guest->next->where = &guest->next;
    guests->list = guest;
    guests->count++;
    return guest;
}

static struct guest *find(const struct guests *guests, const struct spool_id *id)
{
    struct guest *guest = guests->list;
    while (guest != NULL && (guest->id.job != id->job || guest->id.attempt != id->attempt ||
                                guest->id.step != id->step || guest->id.task != id->task))
        guest = guest->next;
    return guest;
}

static int open_entry(const struct guests *guests, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    int fd =
        openat(launcher_spool_fd(guests->launcher), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

static void discard(const struct guests *guests, const struct spool_id *id)
{
    int r = launcher_discard(guests->launcher, id);
    if (r < 0)
        log_warning(
            "job %" PRIu64 ": what its step %u left cannot be removed: %s", id->job, id->step, strerror(-r));
}

/* --- the stream of one that could not start --- */

static void tell_end(const struct guest *guest, int32_t code, const char *text)
{
    _cleanup_buffer_ struct buffer frame = { 0 };
    uint8_t head[TERMINAL_HEAD_SIZE + 4];
    size_t length = strnlen(text, TERMINAL_TEXT_MAX);
    if (guest->stream_fd < 0 || terminal_visit_say(guest->stream_fd, guest->stream, NULL) < 0)
        return;
    terminal_head(head, TERMINAL_END, 4 + length);
    terminal_put(head + TERMINAL_HEAD_SIZE, 4, (uint32_t)code);
    buffer_append(&frame, head, sizeof(head));
    buffer_append(&frame, text, length);
    (void)send(guest->stream_fd, frame.bytes, frame.length, MSG_NOSIGNAL);
}

static void tell_exit(const struct guest *guest, int dirfd)
{
    struct launch_exit record;
    if (file_read_record(dirfd, SPOOL_EXIT, &launch_exit_record, &record, NULL) < 0) {
        tell_end(guest, 125, "the process could not be started");
        return;
    }
    tell_end(guest, record.exit_code, record.text != NULL ? record.text : "");
    record_clear(&launch_exit_record, &record);
}

/* --- its life --- */

static void bring(struct guest *guest)
{
    const struct terminal_visit visit = { .magic = TERMINAL_VISIT_MAGIC, .size = guest->size };
    int r = terminal_visit_say(guest->stream_fd, guest->stream, NULL);
    if (r == 0)
        r = terminal_visit_bring(
            launcher_spool_fd(guest->guests->launcher), &guest->id, &visit, guest->stream_fd);
    if (r < 0)
        log_warning("job %" PRIu64 ": nobody takes the input of its step %u: %s", guest->id.job,
            guest->id.step, strerror(-r));
    closep(&guest->stream_fd);
    guest->stream_fd = -1;
}

static void end(struct guest *guest, int dirfd)
{
    struct guests *guests = guest->guests;
    struct spool_id id = guest->id;
    if (guest->stream_fd >= 0)
        tell_exit(guest, dirfd);
    guest_free(guest);
    discard(guests, &id);
}

static bool has_file(int dirfd, const char *name)
{
    return faccessat(dirfd, name, F_OK, 0) == 0;
}

void guests_look(struct guests *guests, const struct spool_id *id)
{
    struct guest *guest = find(guests, id);
    _cleanup_close_ int dirfd = open_entry(guests, id);
    if (dirfd < 0)
        return;
    if (guest == NULL) {
        if (has_file(dirfd, SPOOL_EXIT))
            discard(guests, id);
        return;
    }
    if (guest->stream_fd >= 0 && has_file(dirfd, SPOOL_STARTED))
        bring(guest);
    if (has_file(dirfd, SPOOL_EXIT))
        end(guest, dirfd);
}

/* Its shepherd ended without an exit record: what it ran has lost its terminal, and ends with the job. */
static void on_shepherd_end(void *arg, int status)
{
    struct guest *guest = arg;
    guest->child = NULL;
    _cleanup_close_ int dirfd = open_entry(guest->guests, &guest->id);
    end(guest, dirfd);
}

void guests_find(struct guests *guests, const struct spool_id *id)
{
    struct launch_started started;
    _cleanup_close_ int dirfd = open_entry(guests, id);
    if (dirfd < 0)
        return;
    if (!spool_is_alive(dirfd)) {
        discard(guests, id);
        return;
    }
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        return;
    int pidfd = process_open((pid_t)started.shepherd_pid, started.shepherd_start);
    record_clear(&launch_started_record, &started);
    if (pidfd < 0)
        return;
    struct guest *guest = guest_add(guests, id);
    guest->child = child_watch(guests->base, pidfd, on_shepherd_end, guest);
}

/* --- start --- */

/* Where the parts of the job meet was not known yet when its spec was written. */
static void find_port(int dirfd, struct launch_spec *spec)
{
    struct launch_started started;
    if (file_read_record(dirfd, SPOOL_STARTED, &launch_started_record, &started, NULL) < 0)
        return;
    if (started.port != 0)
        launch_tell_port(&spec->gpu_env, started.port);
    record_clear(&launch_started_record, &started);
}

/* The spec of a step that runs, and nothing else. */
static int read_host(const struct guests *guests, const struct message_open_guest *request,
    struct launch_spec *ret, struct error *err)
{
    struct spool_id host = { request->job, request->attempt, 0, request->task };
    _cleanup_close_ int dirfd = open_entry(guests, &host);
    bool is_running = dirfd >= 0 && has_file(dirfd, SPOOL_STARTED) && !has_file(dirfd, SPOOL_EXIT);
    if (!is_running || file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, ret, NULL) < 0)
        return error_set(err, -EALREADY, "job %" PRIu64 " does not run any more", request->job);
    if (ret->token == request->token) {
        find_port(dirfd, ret);
        return 0;
    }
    record_clear(&launch_spec_record, ret);
    return error_set(err, -EALREADY, "another job %" PRIu64 " runs here", request->job);
}

static void replace_text(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
}

/* A guest runs beside the container, in the same cgroup. */
static void leave_container(struct launch_spec *spec)
{
    for (size_t i = 0; i < spec->image.count; i++)
        record_clear(&launch_image_record, (struct launch_image *)spec->image.items + i);
    free(spec->image.items);
    spec->image = (struct record_list){ 0 };
}

/* The job's spec, with what is different for the guest. */
static void adapt(struct launch_spec *spec, const struct message_open_guest *request)
{
    static const char null_device[] = "/dev/null";
    char number[16];
    strings_clear(&spec->command);
    strings_copy(&spec->command, &request->command);
    for (size_t i = 0; i < request->env.count; i++) {
        const char *entry = request->env.items[i], *equals = strchr(entry, '=');
        if (equals == NULL)
            continue;
        _cleanup_free_ char *name = xstrndup(entry, (size_t)(equals - entry));
        strings_set_env(&spec->env, name, equals + 1);
    }
    if (request->cwd != NULL) {
        replace_text(&spec->cwd, request->cwd);
        replace_text(&spec->cwd_fallback, NULL);
        strings_set_env(&spec->env, "PWD", request->cwd);
    }
    leave_container(spec);
    replace_text(&spec->output, null_device);
    replace_text(&spec->output_fallback, NULL);
    replace_text(&spec->exit_copy_dir, NULL);
    (void)snprintf(number, sizeof(number), "%u", spec->step);
    strings_set_env(&spec->gpu_env, "MGPU_STEP", number);
    spec->is_output_default = false;
    spec->is_guest = true;
    spec->is_gated = false;
    spec->time_limit_ms = 0; // it ends with the job
    spec->lease_ms = 0;
    spec->warn_signal = 0;
    spec->tty_idle_ms = 0;
    replace_text(&spec->say_pipe, NULL); // it says things where the job does
    spec->is_tty = request->is_tty;
    spec->tty_rows = request->rows;
    spec->tty_columns = request->columns;
}

/* The next number of a step that is free. */
static int make_entry(struct guests *guests, struct spool_id *id, struct error *err)
{
    char name[SPOOL_NAME_SIZE];
    for (id->step = 1; id->step < STEPS_MAX; id->step++) {
        spool_name(id, name);
        if (mkdirat(launcher_spool_fd(guests->launcher), name, 0700) == 0)
            return open_entry(guests, id);
        if (errno != EEXIST)
            break;
    }
    return error_set_errno(err, -errno, "cannot make a spool directory for job %" PRIu64, id->job);
}

static int stage(struct guests *guests, const struct message_open_guest *request, struct spool_id *ret_id,
    struct error *err)
{
    struct launch_spec spec;
    int r = read_host(guests, request, &spec, err);
    if (r < 0)
        return r;
    *ret_id = (struct spool_id){ .job = request->job, .attempt = request->attempt, .task = request->task };
    _cleanup_close_ int dirfd = make_entry(guests, ret_id, err);
    r = dirfd;
    if (dirfd >= 0) {
        spec.step = ret_id->step;
        adapt(&spec, request);
        r = file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, false);
        if (r < 0)
            (void)error_set_errno(err, r, "cannot write the spool of job %" PRIu64, request->job);
    }
    record_clear(&launch_spec_record, &spec);
    return r < 0 ? r : 0;
}

static int start(
    struct guests *guests, const struct message_open_guest *request, int *stream_fd, struct error *err)
{
    struct spool_id id;
    struct launcher_process shepherd;
    if (guests->count >= GUESTS_MAX)
        return error_set(
            err, -EBUSY, "the node runs as many processes beside jobs as it may; try again later");
    int r = stage(guests, request, &id, err);
    if (r < 0)
        return r;
    r = launcher_start(guests->launcher, &id, &shepherd, err);
    if (r < 0) {
        discard(guests, &id);
        return r;
    }
    struct guest *guest = guest_add(guests, &id);
    guest->stream = request->stream;
    guest->stream_fd = take_fd(stream_fd);
    guest->size = (struct terminal_size){ (uint16_t)request->rows, (uint16_t)request->columns };
    guest->child = child_watch(guests->base, shepherd.pidfd, on_shepherd_end, guest);
    return 0;
}

void guests_open(struct guests *guests, const struct message_open_guest *request)
{
    struct error err = { 0 };
    _cleanup_close_ int fd = terminal_visit_dial(guests->link_path);
    if (fd < 0)
        log_warning("cannot dial the controller for a process: %s", strerror(-fd));
    else if (start(guests, request, &fd, &err) < 0)
        (void)terminal_visit_say(fd, request->stream, &err);
}

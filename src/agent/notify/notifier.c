/* SPDX-License-Identifier: MIT */
/*
 * One notifier:
 *
 *      RUNNING ──its process ends, or is killed on timeout──> CLEARING ──cgroup is empty──> removed
 *         └── NOTIFIED
 *
 * Its cgroup is like that of a job's step, with attempt 0, which no job has. No GPU device can be opened in
 * it, memory and processes are limited, and all processes in it are killed at the end. Mail programs exit
 * when they have queued a mail and deliver it in the background, for which they get the same time again. An
 * agent that exits kills its notifiers; the controller then requests the notifications again.
 */
#include "agent/notify/notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/notify/notifier_child.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "job/notify.h"

#define CLEAR_MS   50
#define CLEARS_MAX 200U
#define MEMORY_MAX (512ULL << 20)
#define PIDS_MAX   128U
#define OUTPUT_MAX 200U // bytes of standard error that are kept
#define READ_MAX   4096U
#define READS_MAX  64U // of READ_MAX bytes; further output is ignored

struct notifier {
    struct notifiers *notifiers;
    struct notifier *next, **where; // the list, and the pointer to this entry
    struct spool_id cell;
    bool has_cell;
    uint64_t notification;
    uint32_t target, uid;
    struct child *child; // while it runs
    pid_t pid;           // valid while there is a child
    int output_fd;       // the other end of its standard error
    struct event *status_event, *timer;
    char output[OUTPUT_MAX + 1];
    size_t output_length;
    unsigned reads, clears;
    int64_t time_ms;
    int64_t rest_ms; // in CLEARING, time for remaining processes
    bool is_mail, is_late;
};

struct notifiers {
    struct event_base *base;
    const struct confine *confine;
    struct confine_state *cells;
    struct notifiers_options options;
    notified_fn *on_notified;
    void *arg;
    struct notifier *list;
};

static void notifier_free(struct notifier *notifier)
{
    *notifier->where = notifier->next;
    if (notifier->next != NULL)
        notifier->next->where = notifier->where;
    child_free(notifier->child);
    if (notifier->status_event != NULL)
        event_free(notifier->status_event);
    if (notifier->timer != NULL)
        event_free(notifier->timer);
    closep(&notifier->output_fd);
    free(notifier);
}

static struct notifier *notifier_new(struct notifiers *notifiers)
{
    struct notifier *notifier = xcalloc(1, sizeof(*notifier));
    notifier->notifiers = notifiers;
    notifier->output_fd = -1;
    notifier->where = &notifiers->list;
    notifier->next = notifiers->list;
    if (notifier->next != NULL)
        notifier->next->where = &notifier->next;
    notifiers->list = notifier;
    return notifier;
}

/* --- the end --- */

static void on_clear(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = { .tv_usec = CLEAR_MS * 1000 };
    struct notifier *notifier = arg;
    struct notifiers *notifiers = notifier->notifiers;
    int r = 0;
    if (notifier->has_cell) {
        if (notifier->rest_ms <= 0)
            (void)notifiers->confine->kill(notifiers->cells, &notifier->cell);
        r = notifiers->confine->remove(notifiers->cells, &notifier->cell);
    }
    if (r == -EBUSY && (notifier->rest_ms > 0 || notifier->clears++ < CLEARS_MAX)) {
        notifier->rest_ms -= CLEAR_MS;
        (void)evtimer_add(notifier->timer, &again);
        return;
    }
    if (r < 0)
        log_warning("cannot end processes left by a notification of job %llu: %s",
            (unsigned long long)notifier->cell.job, strerror(-r));
    notifier_free(notifier);
}

static void clear(struct notifier *notifier)
{
    if (notifier->timer != NULL)
        event_free(notifier->timer);
    notifier->timer = evtimer_new(notifier->notifiers->base, on_clear, notifier);
    if (notifier->timer == NULL)
        abort(); // memory
    on_clear(-1, 0, notifier);
}

/* Keeps the last bytes and discards the rest. */
static void keep_output(struct notifier *notifier, const char *bytes, size_t length)
{
    if (length > OUTPUT_MAX) {
        bytes += length - OUTPUT_MAX;
        length = OUTPUT_MAX;
    }
    size_t kept = notifier->output_length;
    if (kept + length > OUTPUT_MAX) {
        size_t drop = kept + length - OUTPUT_MAX;
        memmove(notifier->output, notifier->output + drop, kept - drop);
        kept -= drop;
    }
    memcpy(notifier->output + kept, bytes, length);
    notifier->output_length = kept + length;
}

/* 0 if there is no more to read. */
static int read_output(struct notifier *notifier)
{
    char bytes[READ_MAX];
    ssize_t n = read(notifier->output_fd, bytes, sizeof(bytes));
    if (n > 0)
        keep_output(notifier, bytes, (size_t)n);
    return n > 0 && ++notifier->reads < READS_MAX;
}

static void stop_listening(struct notifier *notifier)
{
    if (notifier->status_event != NULL)
        event_free(notifier->status_event);
    notifier->status_event = NULL;
    closep(&notifier->output_fd);
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    struct notifier *notifier = arg;
    if (read_output(notifier) == 0)
        stop_listening(notifier);
}

static void answer(
    struct notifiers *notifiers, uint64_t notification, uint32_t target, int32_t error, char *text)
{
    struct message_notified result = {
        .notification = notification, .target = target, .error = error, .text = text
    };
    notifiers->on_notified(notifiers->arg, &result);
}

/* Why it failed, in one line. The caller frees it. */
static char *describe(struct notifier *notifier, int status)
{
    while (notifier->output_length > 0 && notifier->output[notifier->output_length - 1] == '\n')
        notifier->output_length--;
    notifier->output[notifier->output_length] = '\0';
    _cleanup_free_ char *output = text_escape(notifier->output, OUTPUT_MAX);
    const char *colon = output[0] != '\0' ? ": " : "";
    if (notifier->is_late)
        return xasprintf("it took longer than %lld s and was killed%s%s",
            (long long)(notifier->time_ms / 1000), colon, output);
    if (WIFSIGNALED(status))
        return xasprintf("signal %d%s%s", WTERMSIG(status), colon, output);
    return output[0] != '\0' ? xstrdup(output) : xasprintf("exit %d", WEXITSTATUS(status));
}

static void on_end(void *arg, int status)
{
    struct notifier *notifier = arg;
    notifier->child = NULL;
    while (notifier->output_fd >= 0 && read_output(notifier) != 0)
        continue;
    stop_listening(notifier);
    bool is_good = status == 0 && !notifier->is_late;
    _cleanup_free_ char *text = is_good ? NULL : describe(notifier, status);
    answer(notifier->notifiers, notifier->notification, notifier->target, is_good ? 0 : EIO, text);
    notifier->rest_ms = is_good && notifier->is_mail ? notifier->time_ms : 0;
    clear(notifier);
}

/* The process is not reaped yet, so its pid and that of its group have not been reused. */
static void end_now(struct notifier *notifier)
{
    if (notifier->has_cell)
        (void)notifier->notifiers->confine->kill(notifier->notifiers->cells, &notifier->cell);
    (void)kill(-notifier->pid, SIGKILL);
    (void)kill(notifier->pid, SIGKILL); // it may not have its own process group yet
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    struct notifier *notifier = arg;
    notifier->is_late = true;
    end_now(notifier);
}

/* --- the beginning --- */

bool notifiers_is_cell(const struct spool_id *id)
{
    return id->attempt == 0;
}

static bool is_cell_used(const struct notifiers *notifiers, const struct spool_id *id)
{
    for (const struct notifier *notifier = notifiers->list; notifier != NULL; notifier = notifier->next)
        if (notifier->has_cell && notifier->cell.job == id->job && notifier->cell.step == id->step)
            return true;
    return false;
}

/* Creates a restricted cgroup and stores its names in `spec`. */
static int make_cell(struct notifier *notifier, uint64_t job, struct launch_spec *spec, struct error *err)
{
    struct notifiers *notifiers = notifier->notifiers;
    const struct confine *confine = notifiers->confine;
    struct spool_id id = { .job = job };
    struct record_list none = { 0 };
    int shepherd_fd = -1;
    while (is_cell_used(notifiers, &id))
        id.step++;
    int r = confine->prepare(notifiers->cells, &id, &spec->job_cgroup, &shepherd_fd, err);
    if (r < 0)
        return r;
    notifier->cell = id;
    notifier->has_cell = true;
    spec->id.job = id.job;
    spec->id.step = id.step;
    spec->memory_limit = MEMORY_MAX;
    spec->pids_max = PIDS_MAX;
    r = confine->limit(notifiers->cells, &id, spec, err);
    if (r < 0 || notifiers->options.devices == NULL)
        return r;
    gpu_devices_rules(notifiers->options.devices, &none, &spec->devices);
    r = spec->devices.count > 0 ? confine->guard(notifiers->cells, &id, spec, err) : 0;
    return r < 0 ? r : 0;
}

static void watch(struct notifier *notifier, pid_t pid, int pidfd, int output_fd)
{
    const struct timeval time = { .tv_sec = notifier->time_ms / 1000,
        .tv_usec = notifier->time_ms % 1000 * 1000 };
    struct event_base *base = notifier->notifiers->base;
    notifier->output_fd = output_fd;
    notifier->pid = pid;
    notifier->child = child_watch(base, pidfd, on_end, notifier);
    notifier->status_event = event_new(base, output_fd, EV_READ | EV_PERSIST, on_output, notifier);
    notifier->timer = evtimer_new(base, on_late, notifier);
    if (notifier->status_event == NULL || notifier->timer == NULL)
        abort(); // memory
    (void)event_add(notifier->status_event, NULL);
    (void)evtimer_add(notifier->timer, &time);
}

static int start(struct notifier *notifier, const struct message_notify *request, struct error *err)
{
    int ends[2], pidfd = -1;
    struct launch_spec spec = { 0 };
    int r = make_cell(notifier, request->job, &spec, err);
    if (r == 0 && pipe2(ends, O_CLOEXEC) < 0)
        r = error_set_errno(err, -errno, "cannot create a pipe");
    if (r < 0) {
        record_clear(&launch_spec_record, &spec);
        return r;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = child_fork(ends[1], &pidfd);
    if (pid == 0)
        _exit(notifier_child_run(&notifier->notifiers->options, request, &spec));
    (void)close(ends[1]);
    record_clear(&launch_spec_record, &spec);
    if (pid < 0) {
        (void)close(ends[0]);
        return error_set_errno(err, pid, "cannot start a process");
    }
    watch(notifier, pid, pidfd, ends[0]);
    return 0;
}

void notifiers_notify(struct notifiers *notifiers, const struct message_notify *request)
{
    char busy[] = "the node has too many notifications";
    struct error err = { 0 };
    size_t count = 0, of_user = 0;
    for (const struct notifier *notifier = notifiers->list; notifier != NULL; notifier = notifier->next) {
        if (notifier->child != NULL && notifier->notification == request->notification &&
            notifier->target == request->target)
            return;
        count++;
        of_user += notifier->uid == request->uid && notifier->child != NULL;
    }
    if (count >= NOTIFIERS_MAX || of_user >= NOTIFIERS_USER_MAX) {
        answer(notifiers, request->notification, request->target, EBUSY, busy);
        return;
    }
    struct notifier *notifier = notifier_new(notifiers);
    notifier->notification = request->notification;
    notifier->target = request->target;
    notifier->uid = request->uid;
    notifier->time_ms = request->time_ms;
    notifier->is_mail = request->way == NOTIFY_MAIL;
    if (start(notifier, request, &err) == 0)
        return;
    answer(notifiers, request->notification, request->target, -err.code, err.message);
    clear(notifier);
}

void notifiers_clear_cell(struct notifiers *notifiers, const struct spool_id *id)
{
    struct notifier *notifier = notifier_new(notifiers);
    notifier->cell = *id;
    notifier->has_cell = true;
    clear(notifier);
}

struct notifiers *notifiers_new(struct event_base *base, const struct confine *confine,
    struct confine_state *cells, const struct notifiers_options *options, notified_fn *on_notified, void *arg)
{
    struct notifiers *notifiers = xcalloc(1, sizeof(*notifiers));
    *notifiers = (struct notifiers){
        .base = base,
        .confine = confine,
        .cells = cells,
        .options = *options,
        .on_notified = on_notified,
        .arg = arg,
    };
    return notifiers;
}

void notifiers_free(struct notifiers *notifiers)
{
    if (notifiers == NULL)
        return;
    while (notifiers->list != NULL) {
        if (notifiers->list->child != NULL)
            end_now(notifiers->list);
        notifier_free(notifiers->list);
    }
    free(notifiers);
}

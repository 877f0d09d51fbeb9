/* SPDX-License-Identifier: MIT */
/*
 * One teller:
 *
 *      RUNNING ──its process ends, or its time is up and it is killed──> CLEARING ──its cell is empty──> gone
 *         └── TOLD
 *
 * Its cell is like that of a job's step, of attempt 0, which no job has: no device of a GPU can be opened in
 * it, memory and processes are few, and what is left in it is killed with it. Mail programs exit when they
 * have queued a mail and deliver it in the background: what they leave has as much time again. An agent that
 * leaves kills its tellers; the controller then has them told again.
 */
#include "agent/notify/teller.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/notify/teller_child.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "job/notify.h"

#define CLEAR_MS   50
#define CLEARS_MAX 200U
#define MEMORY_MAX (512ULL << 20)
#define PIDS_MAX   128U
#define SAID_MAX   200U // bytes of standard error that are kept
#define READ_MAX   4096U
#define READS_MAX  64U // of READ_MAX bytes; who says more is not listened to

struct teller {
    struct tellers *tellers;
    struct teller *next, **where; // the list and the pointer that points here
    struct spool_id cell;
    bool has_cell;
    uint64_t notice;
    uint32_t target, uid;
    struct child *child; // while it runs
    pid_t pid;           // meaningful while there is a child
    int said_fd;         // the other end of its standard error
    struct event *said_event, *timer;
    char said[SAID_MAX + 1];
    size_t said_length;
    unsigned reads, clears;
    int64_t time_ms;
    int64_t rest_ms; // in CLEARING, for what is left in the cell
    bool is_mail, is_late;
};

struct tellers {
    struct event_base *base;
    const struct confine *confine;
    struct confine_state *cells;
    struct tellers_options options;
    told_fn *on_told;
    void *arg;
    struct teller *list;
};

static void teller_free(struct teller *teller)
{
    *teller->where = teller->next;
    if (teller->next != NULL)
        teller->next->where = teller->where;
    child_free(teller->child);
    if (teller->said_event != NULL)
        event_free(teller->said_event);
    if (teller->timer != NULL)
        event_free(teller->timer);
    closep(&teller->said_fd);
    free(teller);
}

static struct teller *teller_new(struct tellers *tellers)
{
    struct teller *teller = xcalloc(1, sizeof(*teller));
    teller->tellers = tellers;
    teller->said_fd = -1;
    teller->where = &tellers->list;
    teller->next = tellers->list;
    if (teller->next != NULL)
        teller->next->where = &teller->next;
    tellers->list = teller;
    return teller;
}

/* --- the end --- */

static void on_clear(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval again = { .tv_usec = CLEAR_MS * 1000 };
    struct teller *teller = arg;
    struct tellers *tellers = teller->tellers;
    int r = 0;
    if (teller->has_cell) {
        if (teller->rest_ms <= 0)
            (void)tellers->confine->kill(tellers->cells, &teller->cell);
        r = tellers->confine->remove(tellers->cells, &teller->cell);
    }
    if (r == -EBUSY && (teller->rest_ms > 0 || teller->clears++ < CLEARS_MAX)) {
        teller->rest_ms -= CLEAR_MS;
        (void)evtimer_add(teller->timer, &again);
        return;
    }
    if (r < 0)
        log_warning("what a notice of job %llu left running cannot be ended: %s",
            (unsigned long long)teller->cell.job, strerror(-r));
    teller_free(teller);
}

static void clear(struct teller *teller)
{
    if (teller->timer != NULL)
        event_free(teller->timer);
    teller->timer = evtimer_new(teller->tellers->base, on_clear, teller);
    if (teller->timer == NULL)
        abort(); // memory
    on_clear(-1, 0, teller);
}

/* The last bytes of it; the rest is gone. */
static void keep_said(struct teller *teller, const char *bytes, size_t length)
{
    if (length > SAID_MAX) {
        bytes += length - SAID_MAX;
        length = SAID_MAX;
    }
    size_t kept = teller->said_length;
    if (kept + length > SAID_MAX) {
        size_t drop = kept + length - SAID_MAX;
        memmove(teller->said, teller->said + drop, kept - drop);
        kept -= drop;
    }
    memcpy(teller->said + kept, bytes, length);
    teller->said_length = kept + length;
}

/* 0 when there is no more to come. */
static int read_said(struct teller *teller)
{
    char bytes[READ_MAX];
    ssize_t n = read(teller->said_fd, bytes, sizeof(bytes));
    if (n > 0)
        keep_said(teller, bytes, (size_t)n);
    return n > 0 && ++teller->reads < READS_MAX;
}

static void stop_listening(struct teller *teller)
{
    if (teller->said_event != NULL)
        event_free(teller->said_event);
    teller->said_event = NULL;
    closep(&teller->said_fd);
}

static void on_said(evutil_socket_t fd, short what, void *arg)
{
    struct teller *teller = arg;
    if (read_said(teller) == 0)
        stop_listening(teller);
}

static void answer(struct tellers *tellers, uint64_t notice, uint32_t target, int32_t error, char *text)
{
    struct message_told told = { .notice = notice, .target = target, .error = error, .text = text };
    tellers->on_told(tellers->arg, &told);
}

/* Why it failed, in one line. The caller frees it. */
static char *describe(struct teller *teller, int status)
{
    while (teller->said_length > 0 && teller->said[teller->said_length - 1] == '\n')
        teller->said_length--;
    teller->said[teller->said_length] = '\0';
    _cleanup_free_ char *said = text_escape(teller->said, SAID_MAX);
    const char *colon = said[0] != '\0' ? ": " : "";
    if (teller->is_late)
        return xasprintf(
            "it took longer than %lld s and was ended%s%s", (long long)(teller->time_ms / 1000), colon, said);
    if (WIFSIGNALED(status))
        return xasprintf("signal %d%s%s", WTERMSIG(status), colon, said);
    return said[0] != '\0' ? xstrdup(said) : xasprintf("exit %d", WEXITSTATUS(status));
}

static void on_end(void *arg, int status)
{
    struct teller *teller = arg;
    teller->child = NULL;
    while (teller->said_fd >= 0 && read_said(teller) != 0)
        continue;
    stop_listening(teller);
    bool is_good = status == 0 && !teller->is_late;
    _cleanup_free_ char *text = is_good ? NULL : describe(teller, status);
    answer(teller->tellers, teller->notice, teller->target, is_good ? 0 : EIO, text);
    teller->rest_ms = is_good && teller->is_mail ? teller->time_ms : 0;
    clear(teller);
}

/* The process is not reaped yet, so that its number, and that of its group, are its own. */
static void end_now(struct teller *teller)
{
    if (teller->has_cell)
        (void)teller->tellers->confine->kill(teller->tellers->cells, &teller->cell);
    (void)kill(-teller->pid, SIGKILL);
    (void)kill(teller->pid, SIGKILL); // it may not have a group of its own yet
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    struct teller *teller = arg;
    teller->is_late = true;
    end_now(teller);
}

/* --- the beginning --- */

bool tellers_is_cell(const struct spool_id *id)
{
    return id->attempt == 0;
}

static bool is_cell_used(const struct tellers *tellers, const struct spool_id *id)
{
    for (const struct teller *teller = tellers->list; teller != NULL; teller = teller->next)
        if (teller->has_cell && teller->cell.job == id->job && teller->cell.step == id->step)
            return true;
    return false;
}

/* A place with few rights. `spec` learns its cgroups. */
static int make_cell(struct teller *teller, uint64_t job, struct launch_spec *spec, struct error *err)
{
    struct tellers *tellers = teller->tellers;
    const struct confine *confine = tellers->confine;
    struct spool_id id = { .job = job };
    struct record_list none = { 0 };
    int shepherd_fd = -1;
    while (is_cell_used(tellers, &id))
        id.step++;
    int r = confine->prepare(tellers->cells, &id, &spec->job_cgroup, &shepherd_fd, err);
    if (r < 0)
        return r;
    teller->cell = id;
    teller->has_cell = true;
    spec->job = id.job;
    spec->step = id.step;
    spec->memory_limit = MEMORY_MAX;
    spec->pids_max = PIDS_MAX;
    r = confine->limit(tellers->cells, &id, spec, err);
    if (r < 0 || tellers->options.devices == NULL)
        return r;
    gpu_devices_rules(tellers->options.devices, &none, &spec->devices);
    r = spec->devices.count > 0 ? confine->guard(tellers->cells, &id, spec, err) : 0;
    return r < 0 ? r : 0;
}

static void watch(struct teller *teller, pid_t pid, int pidfd, int said_fd)
{
    const struct timeval time = { .tv_sec = teller->time_ms / 1000,
        .tv_usec = teller->time_ms % 1000 * 1000 };
    struct event_base *base = teller->tellers->base;
    teller->said_fd = said_fd;
    teller->pid = pid;
    teller->child = child_watch(base, pidfd, on_end, teller);
    teller->said_event = event_new(base, said_fd, EV_READ | EV_PERSIST, on_said, teller);
    teller->timer = evtimer_new(base, on_late, teller);
    if (teller->said_event == NULL || teller->timer == NULL)
        abort(); // memory
    (void)event_add(teller->said_event, NULL);
    (void)evtimer_add(teller->timer, &time);
}

static int start(struct teller *teller, const struct message_tell *request, struct error *err)
{
    int ends[2], pidfd = -1;
    struct launch_spec spec = { 0 };
    int r = make_cell(teller, request->job, &spec, err);
    if (r == 0 && pipe2(ends, O_CLOEXEC) < 0)
        r = error_set_errno(err, -errno, "cannot make a pipe");
    if (r < 0) {
        record_clear(&launch_spec_record, &spec);
        return r;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = child_fork(ends[1], &pidfd);
    if (pid == 0)
        _exit(teller_child_run(&teller->tellers->options, request, &spec));
    (void)close(ends[1]);
    record_clear(&launch_spec_record, &spec);
    if (pid < 0) {
        (void)close(ends[0]);
        return error_set_errno(err, pid, "cannot start a process");
    }
    watch(teller, pid, pidfd, ends[0]);
    return 0;
}

void tellers_tell(struct tellers *tellers, const struct message_tell *request)
{
    char busy[] = "the node has too much to tell";
    struct error err = { 0 };
    size_t count = 0, of_user = 0;
    for (const struct teller *teller = tellers->list; teller != NULL; teller = teller->next) {
        if (teller->child != NULL && teller->notice == request->notice && teller->target == request->target)
            return;
        count++;
        of_user += teller->uid == request->uid && teller->child != NULL;
    }
    if (count >= TELLERS_MAX || of_user >= TELLERS_USER_MAX) {
        answer(tellers, request->notice, request->target, EBUSY, busy);
        return;
    }
    struct teller *teller = teller_new(tellers);
    teller->notice = request->notice;
    teller->target = request->target;
    teller->uid = request->uid;
    teller->time_ms = request->time_ms;
    teller->is_mail = request->way == NOTIFY_MAIL;
    if (start(teller, request, &err) == 0)
        return;
    answer(tellers, request->notice, request->target, -err.code, err.message);
    clear(teller);
}

void tellers_clear_cell(struct tellers *tellers, const struct spool_id *id)
{
    struct teller *teller = teller_new(tellers);
    teller->cell = *id;
    teller->has_cell = true;
    clear(teller);
}

struct tellers *tellers_new(struct event_base *base, const struct confine *confine,
    struct confine_state *cells, const struct tellers_options *options, told_fn *on_told, void *arg)
{
    struct tellers *tellers = xcalloc(1, sizeof(*tellers));
    *tellers = (struct tellers){
        .base = base,
        .confine = confine,
        .cells = cells,
        .options = *options,
        .on_told = on_told,
        .arg = arg,
    };
    return tellers;
}

void tellers_free(struct tellers *tellers)
{
    if (tellers == NULL)
        return;
    while (tellers->list != NULL) {
        if (tellers->list->child != NULL)
            end_now(tellers->list);
        teller_free(tellers->list);
    }
    free(tellers);
}

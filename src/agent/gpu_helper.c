/* SPDX-License-Identifier: MIT */
/*
 * GPU drivers can hang in calls that nothing interrupts, so that they are only called in a process whose
 * silence harms nobody. One socket carries its reports, and a byte for each look that is asked for; a timer
 * notices the silence.
 *
 *      STARTING ──report──> SAMPLING ──silent, end of pipe──> ENDING ──process gone──> WAITING ──timer──┐
 *          ^ └──────────────silent, end of pipe───────────────^                                         │
 *          └────────────────────────────────────────────────────────────────────────────────────────────┘
 *      a final report ──> SETTLED
 *
 * A killed helper may stay in the kernel for long; no second one is started beside it, it would hang too.
 */
#include "agent/gpu_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/gpu_probe.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"

const struct gpu_helper_timing gpu_helper_defaults = {
    .period_ms = 1000, .first_ms = 10000, .silent_ms = 5000, .retry_first_ms = 1000, .retry_max_ms = 60000
};

#define REPORT_MAX (1U << 20) // bytes of one report

enum helper_state { STARTING, SAMPLING, ENDING, WAITING, SETTLED };

struct gpu_helper {
    struct event_base *base;
    struct gpu_spec spec;
    struct gpu_helper_timing timing;
    gpu_helper_fn *on_report;
    void *arg;
    enum helper_state state;
    int fd;
    struct event *readable, *timer;
    struct child *child;
    struct buffer input;
    struct gpu_report last;
    int64_t retry_ms;
    uint64_t asked;     // looks in all
    uint64_t asked_old; // of those: before the present helper process, whose first report answers them
};

static void on_timer(evutil_socket_t fd, short what, void *arg);
static void start(struct gpu_helper *helper);

static void set_timer(struct gpu_helper *helper, int64_t ms)
{
    struct timeval time = { ms / 1000, ms % 1000 * 1000 };
    (void)evtimer_add(helper->timer, &time);
}

static void close_pipe(struct gpu_helper *helper)
{
    if (helper->readable != NULL)
        event_free(helper->readable);
    helper->readable = NULL;
    closep(&helper->fd);
    helper->fd = -1;
    buffer_clear(&helper->input);
}

static void wait_for_retry(struct gpu_helper *helper)
{
    helper->state = WAITING;
    set_timer(helper, helper->retry_ms);
    helper->retry_ms = helper->retry_ms * 2 > helper->timing.retry_max_ms ? helper->timing.retry_max_ms
                                                                          : helper->retry_ms * 2;
}

/* Tells what is known now: the GPUs of the last report, but lost. */
static void report_lost(struct gpu_helper *helper, const char *why)
{
    struct gpu_state *gpus = helper->last.gpus.items;
    char *text = xstrdup(why); // it may be the last report's own
    for (size_t i = 0; i < helper->last.gpus.count; i++) {
        gpus[i].is_lost = 1;
        gpus[i].valid = 0;
    }
    if (helper->last.backend == NULL)
        helper->last.backend = xstrdup(helper->spec.kind == GPU_SPEC_SIM ? "sim" : "nvml");
    helper->last.is_on = 0;
    helper->last.is_sample = 1;
    free(helper->last.text);
    helper->last.text = text;
    if (helper->last.fix == NULL)
        helper->last.fix =
            xstrdup("run nvidia-smi to see whether the driver answers; a reboot may be needed");
    helper->on_report(helper->arg, &helper->last);
}

static void on_child_end(void *arg, int status)
{
    struct gpu_helper *helper = arg;
    helper->child = NULL;
    if (helper->state == ENDING)
        wait_for_retry(helper);
}

/* The helper hangs, crashed or speaks nonsense. */
static void give_up(struct gpu_helper *helper, const char *why)
{
    log_warning("GPU helper: %s", why);
    helper->state = ENDING;
    close_pipe(helper);
    (void)evtimer_del(helper->timer);
    if (helper->child != NULL)
        (void)process_signal(child_pidfd(helper->child), SIGKILL);
    else
        wait_for_retry(helper);
    report_lost(helper, why);
}

/* A backend that could not open says so and ends, to be tried again later. */
static void take_report(struct gpu_helper *helper)
{
    if (helper->last.is_final) {
        helper->state = SETTLED;
        close_pipe(helper);
        (void)evtimer_del(helper->timer);
    } else {
        helper->state = SAMPLING;
        set_timer(helper, helper->timing.silent_ms);
    }
    if (helper->last.is_on)
        helper->retry_ms = helper->timing.retry_first_ms;
    helper->on_report(helper->arg, &helper->last);
}

/* Takes whole reports out of the input. */
static int read_reports(struct gpu_helper *helper)
{
    uint16_t id;
    size_t length;
    for (;;) {
        struct buffer *input = &helper->input;
        int r = record_peek(input->bytes, input->length, REPORT_MAX, &id, &length);
        if (r < 0)
            return r;
        if (length == 0 || length > input->length)
            return 0;
        struct gpu_report report;
        r = record_decode(&gpu_report_record, input->bytes, length, &report, NULL);
        if (r < 0)
            return r;
        memmove(input->bytes, input->bytes + length, input->length - length);
        input->length -= length;
        record_clear(&gpu_report_record, &helper->last);
        helper->last = report;
        helper->last.answers += helper->asked_old;
        take_report(helper);
        if (helper->state == SETTLED)
            return 0;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct gpu_helper *helper = arg;
    char chunk[65536];
    ssize_t n = read(helper->fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        bool has_said_why = helper->state == SAMPLING && !helper->last.is_on;
        give_up(helper, has_said_why ? helper->last.text : "the GPU helper process ended");
        return;
    }
    buffer_append(&helper->input, chunk, (size_t)n);
    if (read_reports(helper) < 0)
        give_up(helper, "the GPU helper process sent nonsense");
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gpu_helper *helper = arg;
    if (helper->state == WAITING)
        start(helper);
    else
        give_up(helper, "the GPU driver does not answer");
}

static void run_child(const struct gpu_helper *helper)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "mgpu-gpus");
    _exit(gpu_probe_run(CHILD_FD, &helper->spec, helper->timing.period_ms));
}

static void start(struct gpu_helper *helper)
{
    int pipe_fds[2], pidfd;
    helper->state = STARTING;
    helper->asked_old = helper->asked;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe_fds) < 0) {
        give_up(helper, "cannot make a socket for the GPU helper process");
        return;
    }
    pid_t pid = child_fork(pipe_fds[1], &pidfd);
    if (pid == 0)
        run_child(helper);
    (void)close(pipe_fds[1]);
    helper->fd = pipe_fds[0];
    if (pid < 0) {
        give_up(helper, "cannot start the GPU helper process");
        return;
    }
    (void)fcntl(helper->fd, F_SETFL, O_NONBLOCK);
    helper->child = child_watch(helper->base, pidfd, on_child_end, helper);
    helper->readable = event_new(helper->base, helper->fd, EV_READ | EV_PERSIST, on_readable, helper);
    (void)event_add(helper->readable, NULL);
    set_timer(helper, helper->timing.first_ms);
}

struct gpu_helper *gpu_helper_new(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, gpu_helper_fn *on_report, void *arg)
{
    struct gpu_helper *helper = xcalloc(1, sizeof(*helper));
    helper->base = base;
    helper->spec = *spec;
    helper->timing = *timing;
    helper->on_report = on_report;
    helper->arg = arg;
    helper->fd = -1;
    helper->retry_ms = timing->retry_first_ms;
    helper->timer = evtimer_new(base, on_timer, helper);
    start(helper);
    return helper;
}

uint64_t gpu_helper_ask(struct gpu_helper *helper)
{
    helper->asked++;
    /* A helper that hangs reads nothing, and is replaced; the next one answers all that was asked before. */
    if (helper->fd < 0 || send(helper->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
        helper->asked_old++;
    return helper->asked;
}

void gpu_helper_free(struct gpu_helper *helper)
{
    if (helper == NULL)
        return;
    close_pipe(helper);
    if (helper->child != NULL)
        (void)process_signal(child_pidfd(helper->child), SIGKILL);
    child_free(helper->child);
    event_free(helper->timer);
    record_clear(&gpu_report_record, &helper->last);
    free(helper);
}

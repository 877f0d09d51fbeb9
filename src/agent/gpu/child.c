/* SPDX-License-Identifier: MIT */
/*
 * GPU drivers can hang in calls that nothing interrupts, so they are only called in a separate process. A
 * socket carries its reports, and a byte that wakes it for each requested check; a shared page lists the GPUs
 * to check. On that page the helper also counts the operations it begins, which shows that it makes progress.
 * A timer checks this count. It counts its own ticks, so that a suspended machine is not mistaken for a hang,
 * and only time that the helper could have used (gpu/active_time.h). The page has the sum for the helper's
 * own threads.
 *
 *      WATCHED ──silent, end of stream, invalid data──> DISMISSED ──process ended──> GONE
 *
 * A process that outlives the agent exits at the end of its socket or, if the driver blocks it, by a timer: a
 * SIGKILL while the driver initialises a GPU has left GPUs unusable.
 */
#include "agent/gpu/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/gpu/active_time.h"
#include "agent/gpu/probe.h"
#include "agent/host/child.h"
#include "agent/host/helper_rights.h"
#include "base/memory.h"
#include "base/process.h"

#define REPORT_MAX   (5U << 18) // bytes of one report
#define TICKS_SILENT 4          // checks of the page before a helper counts as silent
#define TICK_MIN_MS  5

struct gpu_child {
    struct gpu_child_events events;
    const struct gpu_helper_timing *timing;
    struct gpu_progress *page;
    struct child *process;
    int fd;
    struct event *readable, *tick, *grace;
    struct buffer input;
    uint64_t steps;   // number last seen on the page
    int64_t still_ms; // time for which it has not changed
    struct gpu_active_time active_time;
    int64_t tick_ms, open_ms;
    struct strings uuids; // of its GPUs, in the order of its first report
    uint64_t asked;       // looks
};

static void close_socket(struct gpu_child *child)
{
    if (child->readable != NULL)
        event_free(child->readable);
    child->readable = NULL;
    closep(&child->fd);
    buffer_clear(&child->input);
    (void)event_del(child->tick);
}

static void fail(struct gpu_child *child, const char *why, bool is_silent)
{
    close_socket(child);
    child->events.on_failure(child->events.arg, child, why, is_silent);
}

static void note_uuids(struct gpu_child *child, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    for (size_t i = child->uuids.count; i < gpus->count; i++)
        strings_add(&child->uuids, states[i].uuid != NULL ? states[i].uuid : "");
}

/* Takes complete reports out of the input. A receiver may dismiss the child. */
static int read_reports(struct gpu_child *child)
{
    uint16_t id;
    size_t length;
    while (child->fd >= 0) {
        struct buffer *input = &child->input;
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
        note_uuids(child, &report.gpus);
        child->events.on_report(child->events.arg, child, &report);
        record_clear(&gpu_report_record, &report);
    }
    return 0;
}

/* False if there is nothing to read now. */
static bool read_some(struct gpu_child *child)
{
    char chunk[65536];
    ssize_t n = read(child->fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        fail(child, "the GPU helper process ended", false);
        return true;
    }
    buffer_append(&child->input, chunk, (size_t)n);
    if (read_reports(child) < 0)
        fail(child, "the GPU helper process sent invalid data", false);
    return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)read_some(arg);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct gpu_child *child = arg;
    uint64_t steps = atomic_load(&child->page->steps);
    bool is_prompt = gpu_child_is_open(child) || atomic_load(&child->page->is_prompt) != 0;
    int64_t most_ms = is_prompt ? child->timing->silent_ms : child->open_ms;
    int64_t passed_ms = gpu_active_time_count(&child->active_time, child->tick_ms);
    gpu_progress_pass(child->page, passed_ms);
    child->still_ms = steps == child->steps ? child->still_ms + passed_ms : 0;
    child->steps = steps;
    if (child->still_ms >= most_ms)
        fail(child, "the GPU driver does not respond", true);
}

static void on_end(void *arg, int status)
{
    struct gpu_child *child = arg;
    child->process = NULL;
    /* Its last output before it ended is still in the socket. */
    while (child->fd >= 0 && read_some(child))
        ;
    if (child->fd >= 0)
        fail(child, "the GPU helper process ended", false);
    child->events.on_gone(child->events.arg, child);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
    struct gpu_child *child = arg;
    if (child->process != NULL)
        (void)process_signal(child_pidfd(child->process), SIGKILL);
}

static struct timeval to_timeval(int64_t ms)
{
    return (struct timeval){ ms / 1000, ms % 1000 * 1000 };
}

/* --- in the helper process --- */

static struct {
    timer_t timer; // ends the process
    const struct gpu_progress *page;
    struct itimerspec opening, open;
} leaving;

/* The agent has ended. The end of the socket is noticed between two calls of the driver. */
static void on_orphaned(int signal_number)
{
    bool is_open = atomic_load(&leaving.page->is_open) != 0;
    (void)timer_settime(leaving.timer, 0, is_open ? &leaving.open : &leaving.opening, NULL);
}

static struct itimerspec to_timer(int64_t ms)
{
    return (struct itimerspec){ .it_value = { ms / 1000, ms % 1000 * 1000000 } };
}

static void prepare_to_leave(const struct gpu_helper_timing *timing, const struct gpu_progress *page)
{
    struct sigevent end = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
    const struct sigaction action = { .sa_handler = on_orphaned, .sa_flags = SA_RESTART };
    leaving.page = page;
    leaving.opening = to_timer(timing->first_ms);
    leaving.open = to_timer(timing->leave_ms);
    if (timer_create(CLOCK_MONOTONIC, &end, &leaving.timer) == 0 && sigaction(SIGHUP, &action, NULL) == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGHUP);
    else
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void run(
    const struct gpu_spec *spec, const struct gpu_helper_timing *timing, struct gpu_progress *page)
{
    prepare_to_leave(timing, page);
    helper_enter(HELPER_GPUS);
    _exit(gpu_probe_run(CHILD_FD, spec, page, timing->period_ms, timing->silent_ms));
}

static void watch(struct gpu_child *child, struct event_base *base, int pidfd)
{
    int64_t shortest_ms =
        child->timing->silent_ms < child->open_ms ? child->timing->silent_ms : child->open_ms;
    child->tick_ms = shortest_ms / TICKS_SILENT > TICK_MIN_MS ? shortest_ms / TICKS_SILENT : TICK_MIN_MS;
    const struct timeval tick = to_timeval(child->tick_ms);
    (void)fcntl(child->fd, F_SETFL, O_NONBLOCK);
    child->process = child_watch(base, pidfd, on_end, child);
    child->readable = event_new(base, child->fd, EV_READ | EV_PERSIST, on_readable, child);
    child->tick = event_new(base, -1, EV_PERSIST, on_tick, child);
    child->grace = evtimer_new(base, on_grace, child);
    (void)event_add(child->readable, NULL);
    (void)event_add(child->tick, &tick);
}

struct gpu_child *gpu_child_start(struct event_base *base, const struct gpu_spec *spec,
    const struct gpu_helper_timing *timing, int64_t open_ms, struct gpu_progress *page,
    const struct gpu_child_events *events)
{
    int pair[2], pidfd;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        gpu_progress_free(page);
        return NULL;
    }
    pid_t pid = child_fork(pair[1], &pidfd);
    if (pid == 0)
        run(spec, timing, page);
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        gpu_progress_free(page);
        return NULL;
    }
    struct gpu_child *child = xcalloc(1, sizeof(*child));
    child->events = *events;
    child->timing = timing;
    child->open_ms = open_ms;
    child->page = page;
    child->fd = pair[0];
    child->active_time.pid = pid;
    watch(child, base, pidfd);
    return child;
}

/* -1 if it has not reported such a GPU. */
static ssize_t find_position(const struct gpu_child *child, const char *uuid)
{
    for (size_t i = 0; uuid != NULL && i < child->uuids.count; i++)
        if (strcmp(child->uuids.items[i], uuid) == 0)
            return (ssize_t)i;
    return -1;
}

static bool knows_all(const struct gpu_child *child, const struct record_list *grants)
{
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++)
        if (find_position(child, items[i].uuid) < 0)
            return false;
    return grants->count > 0;
}

void gpu_child_ask(struct gpu_child *child, const struct record_list *grants)
{
    child->asked++;
    if (grants != NULL && knows_all(child, grants)) {
        const struct gpu_grant *items = grants->items;
        for (size_t i = 0; i < grants->count; i++)
            gpu_progress_want(child->page, (size_t)find_position(child, items[i].uuid), child->asked);
    } else {
        for (size_t i = 0; i < NODE_GPUS_MAX; i++)
            gpu_progress_want(child->page, i, child->asked);
    }
    if (child->fd >= 0)
        (void)send(child->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void gpu_child_dismiss(struct gpu_child *child)
{
    const struct timeval grace = to_timeval(child->timing->leave_ms);
    close_socket(child);
    (void)event_add(child->grace, &grace);
}

const char *gpu_child_key(const struct gpu_child *child)
{
    child->page->key[GPU_KEY_SIZE - 1] = '\0'; // a faulty library may have written anything there
    return child->page->key;
}

const struct gpu_progress *gpu_child_progress(const struct gpu_child *child)
{
    return child->page;
}

bool gpu_child_is_open(const struct gpu_child *child)
{
    return atomic_load(&child->page->is_open) != 0;
}

void gpu_child_free(struct gpu_child *child)
{
    if (child == NULL)
        return;
    close_socket(child);
    if (child->process != NULL) { // a stopped process must be continued to exit
        (void)process_signal(child_pidfd(child->process), SIGHUP);
        (void)process_signal(child_pidfd(child->process), SIGCONT);
    }
    child_free(child->process);
    event_free(child->tick);
    event_free(child->grace);
    gpu_progress_free(child->page);
    strings_clear(&child->uuids);
    free(child);
}

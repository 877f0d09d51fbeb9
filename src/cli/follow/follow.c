/* SPDX-License-Identifier: MIT */
/*
 * Up to four requests run in parallel, each a channel: the log, followed to its end; a wait for the next
 * state; the cancel request of the user; and news for the waiting line. Logs of other nodes and of standard
 * error are followed beside these (follow_ranks.c). The job has ended for this program when it is done and
 * every byte of its logs has been written. Output goes through an outlet, which is written to only when
 * poll(2) reports that it can be, so a slow reader does not delay signals.
 *
 *   QUEUED ──wait: running────> RUNNING ──wait: done──> DONE ──log complete and written──> return
 *      │ ^                         │                      ^
 *      │ └──log complete── BETWEEN <┘ wait: queued        │
 *      └────────────────wait: done────────────────────────┘
 *
 * Each attempt has its own log: the next one is requested when this one is complete.
 */
#include "cli/follow/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/leaving_signals.h"
#include "cli/api/stream.h"
#include "cli/follow/follow_ranks.h"
#include "cli/follow/foreign.h"
#include "cli/follow/going.h"
#include "cli/follow/idle_news.h"
#include "cli/follow/outlet.h"
#include "cli/follow/session.h"
#include "cli/follow/waiting_line.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/term/raw_terminal.h"

#define NEWS_WAIT_MS   100
#define LOG_REASK_MS   200
#define LOG_BUSY_MS    1000
#define LOG_REASKS_MAX 25

enum channel { CHANNEL_LOG, CHANNEL_WATCH, CHANNEL_CANCEL, CHANNEL_NEWS, CHANNELS };

#define OTHERS (CHANNELS + 4) // descriptors that are polled before those of the ranks

enum phase { FOLLOW_QUEUED, FOLLOW_RUNNING, FOLLOW_BETWEEN, FOLLOW_DONE };

struct follow {
    struct call *call;
    uint64_t id;
    enum phase phase;
    int64_t attempt, requeues; // attempt of the followed log; how many were requeued before it
    json_t *job;               // latest state
    struct stream channels[CHANNELS];
    struct follow_ranks ranks;  // its outputs on other nodes
    struct labelled first;      // then also that on the first node
    struct follow_ranks errors; // standard error of all nodes, if it has its own logs
    struct waiting_line line;
    struct outlet out, error;
    bool has_output;     // of this attempt
    bool needs_reader;   // SIGPIPE was not ignored when this program began
    bool is_output_lost; // of standard output
    unsigned log_reasks; // number of times a log that ended early was requested again
    bool is_abandoned;   // the user does not wait for the end either
    const struct follow_options *options;
    struct going going;               // the effect of signals so far
    bool is_left;                     // the user leaves and the job continues
    struct raw_terminal raw;          // for single keys while it waits
    char idle_level[IDLE_LEVEL_SIZE]; // last level reported
};

static int take_output(void *target, const void *bytes, size_t length)
{
    struct follow *follow = target;
    timeouts_note_received(follow->options->timeouts);
    follow->has_output = true;
    outlet_add(&follow->out, bytes, length);
    return 0;
}

static int take_errors(void *target, const void *bytes, size_t length)
{
    struct follow *follow = target;
    timeouts_note_received(follow->options->timeouts);
    outlet_add(&follow->error, bytes, length);
    return 0;
}

static int take_first(void *target, const void *bytes, size_t length)
{
    struct follow *follow = target;
    return follow->ranks.count > 0 ? labelled_take(&follow->first, bytes, length)
                                   : take_output(target, bytes, length);
}

static void listen_to_errors(struct follow *follow)
{
    bool is_split = json_is_true(json_object_get(follow->job, "split_log"));
    size_t count = follow_ranks_count(follow->job, follow->attempt);
    if (is_split && !follow->options->is_until_start && !follow->error.is_gone)
        follow_ranks_open(&follow->errors, count, take_errors, follow);
}

static void listen_to_ranks(struct follow *follow)
{
    size_t count = follow_ranks_count(follow->job, follow->attempt);
    if (!follow->options->is_until_start)
        follow_ranks_open(&follow->ranks, count, take_output, follow);
    listen_to_errors(follow);
}

static void forget_ranks(struct follow *follow)
{
    follow_ranks_reset(&follow->ranks, follow->call, follow->id, follow->attempt);
    follow->ranks.first = 1;
    follow_ranks_reset(&follow->errors, follow->call, follow->id, follow->attempt);
    follow->errors.stream = "stderr";
}

/* Whether the job has several nodes is not known yet, nor how its lines are shown. */
static bool may_become_wide(const struct follow *follow)
{
    bool has_choice = field_integer(follow->job, "gpus", 0) > 1 && !field_is_known(follow->job, "nodes");
    return has_choice && follow->phase == FOLLOW_QUEUED;
}

static void open_channel(struct follow *follow, enum channel channel, const char *what)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRIu64 "%s", follow->id, what);
    stream_start(&follow->channels[channel], &follow->call->client, path);
}

static void watch(struct follow *follow)
{
    _cleanup_free_ char *until_end = xasprintf("/wait?states=queued,done&idle=%s", follow->idle_level);
    open_channel(
        follow, CHANNEL_WATCH, follow->phase == FOLLOW_QUEUED ? "/wait?states=running,done" : until_end);
}

static void listen_to_log(struct follow *follow, int delay_ms)
{
    struct stream *log = &follow->channels[CHANNEL_LOG];
    _cleanup_free_ char *what = xasprintf("/log?follow=1&wait=1&attempt=%" PRId64, follow->attempt);
    open_channel(follow, CHANNEL_LOG, what);
    log->sink = take_first;
    log->sink_target = follow;
    log->retry_ms = delay_ms > 0 ? clock_boot_ms() + delay_ms : 0;
}

static void post(struct follow *follow, const char *action, const char *body)
{
    struct stream *stream = &follow->channels[CHANNEL_CANCEL];
    stream->method = "POST";
    stream->body = body;
    open_channel(follow, CHANNEL_CANCEL, action);
}

static void leave(struct follow *follow)
{
    waiting_line_clear(&follow->line);
    follow->is_left = true;
}

/* Output may arrive before the message about the start. */
static bool is_waiting(const struct follow *follow)
{
    return follow->phase == FOLLOW_QUEUED && !follow->has_output;
}

static void request(struct follow *follow, int signal, enum going_step step)
{
    const struct going_request *request = going_request(step);
    bool may_talk = !follow->call->is_quiet && signal == SIGINT;
    if (may_talk && (!is_waiting(follow) || step == GOING_KILL))
        talk_line("job %" PRIu64 " %s", follow->id, request->text);
    if (follow->options->show_end != NULL && step == GOING_CANCEL && signal == SIGINT)
        follow->options->show_end(follow->job);
    if (follow->going.is_interrupted)
        post(follow, going_request(GOING_SIGNAL)->action, going_request(GOING_SIGNAL)->body);
    post(follow, request->action, request->body);
}

/* Does what this program's row specifies for the signal. */
static void apply_signal(struct follow *follow, int signal)
{
    enum going_step step = going_next(&follow->going, is_waiting(follow), signal, clock_boot_ms());
    waiting_line_clear(&follow->line);
    if (step == GOING_LEAVE)
        leave(follow);
    else if (step == GOING_SHOW)
        follow->options->show_state(follow->job);
    else if (step == GOING_ABANDON)
        follow->is_abandoned = true;
    else if (step != GOING_WAIT)
        request(follow, signal, step);
}

/* --- keys while it waits --- */

static void show_why(struct follow *follow)
{
    waiting_line_clear(&follow->line);
    follow_show_why(follow->call, follow->job, &follow->line.screen);
}

static const struct {
    char key;
    void (*act)(struct follow *follow);
} waiting_keys[] = {
    { 'd', leave },
    { 'w', show_why },
};

static void on_key(struct follow *follow)
{
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1) {
        raw_terminal_restore(&follow->raw);
        return;
    }
    for (size_t i = 0; i < sizeof(waiting_keys) / sizeof(waiting_keys[0]); i++)
        if (waiting_keys[i].key == key)
            waiting_keys[i].act(follow);
}

static void on_signal(struct follow *follow, int signal_fd)
{
    struct signalfd_siginfo info;
    bool is_one = read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
    const char *passed = is_one ? going_passed((int)info.ssi_signo) : NULL;
    if (passed != NULL)
        post(follow, going_request(GOING_SIGNAL)->action, passed);
    else if (is_one)
        apply_signal(follow, (int)info.ssi_signo);
}

static void write_output(struct follow *follow)
{
    int r = outlet_write(&follow->out);
    if (r == 0)
        return;
    bool is_reader_gone = r == -EPIPE && follow->needs_reader;
    if (!is_reader_gone)
        talk_line("cannot write the output: %s; it is still available: mgpu logs %" PRIu64, strerror(-r),
            follow->id);
    follow->is_output_lost = !is_reader_gone;
    /* As in a shell pipeline, the program ends if its output has no reader. */
    if (is_reader_gone && follow->phase != FOLLOW_DONE)
        apply_signal(follow, SIGPIPE);
}

static void set_job(struct follow *follow, json_t *job)
{
    json_decref(follow->job);
    follow->job = job;
}

/* The wait was answered: the job is in a requested state, or there was an error. */
static int on_watch(struct follow *follow, struct error *err)
{
    const struct http_answer *answer = stream_answer(&follow->channels[CHANNEL_WATCH]);
    if (answer->status == 408) {
        watch(follow);
        return 0;
    }
    if (answer->status != 200)
        return client_problem(answer, err);
    json_t *job = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    if (job == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud is not JSON");
    set_job(follow, job);
    timeouts_note_received(follow->options->timeouts);
    int64_t attempt = field_integer(job, "attempt", 0);
    bool is_next = follow->phase == FOLLOW_RUNNING && !job_is_done(job) &&
                   (field_is(job, "state", "queued") || attempt > follow->attempt);
    if (is_next || follow_requeues(job) > follow->requeues) { // an attempt may be short
        follow->phase = FOLLOW_BETWEEN;
        stream_hurry(&follow->channels[CHANNEL_LOG]);
        listen_to_ranks(follow); // unless that was done while it ran
        return 0;
    }
    follow->attempt = attempt > follow->attempt ? attempt : follow->attempt;
    if (follow->phase == FOLLOW_QUEUED && field_is_known(job, "started_at"))
        waiting_line_started(&follow->line, job);
    raw_terminal_restore(&follow->raw);
    listen_to_ranks(follow); // also if the end is the first state received
    if (job_is_done(job)) {
        follow->phase = FOLLOW_DONE;
        input_feed_over(follow->options->input);
        follow->line.next_ms = 0;
        waiting_line_clear(&follow->line);
        return 0;
    }
    follow->phase = FOLLOW_RUNNING;
    input_feed_run(follow->options->input, follow->attempt);
    idle_news_print(follow->call, follow->job, follow->idle_level);
    watch(follow);
    return 0;
}

/* The job has ended, and all output was received. The size is the sum over all nodes. */
static bool is_output_whole(const struct follow *follow)
{
    uint64_t here = follow->channels[CHANNEL_LOG].offset;
    double written = 0; // unknown: nothing was written
    (void)field_measured(follow->job, "log_bytes", &written);
    return follow->phase == FOLLOW_DONE && follow->ranks.count == 0 && here >= (uint64_t)written;
}

/* True if the answer that ended was the last one. With several nodes each has its own end. "None" may have
 * been the answer just before the job was reported as started. */
static bool is_log_at_its_end(const struct follow *follow, bool is_absent)
{
    if (follow->ranks.count == 0 || follow->phase != FOLLOW_DONE)
        return is_output_whole(follow);
    return !is_absent || follow->log_reasks > 0 || !field_is_known(follow->job, "started_at");
}

static int on_log(struct follow *follow, struct error *err)
{
    unsigned status = stream_answer(&follow->channels[CHANNEL_LOG])->status;
    bool is_absent = status == 404 || status == 416;
    bool is_early = follow->phase == FOLLOW_BETWEEN && is_absent && follow->log_reasks++ == 0;
    if (follow->phase == FOLLOW_BETWEEN && !is_early)
        return labelled_flush(&follow->first);
    bool is_busy = status == 429; // a user may read this many logs at once; the request is repeated
    if (is_early || (is_busy && (follow->phase != FOLLOW_DONE || ++follow->log_reasks <= LOG_REASKS_MAX))) {
        listen_to_log(follow, is_early ? 0 : LOG_BUSY_MS);
        return 0;
    }
    if (status != 200 && status != 206 && !is_absent)
        return client_problem(stream_answer(&follow->channels[CHANNEL_LOG]), err);
    /* While the job runs, its log may still grow; afterwards, a file that was truncated, moved or never
     * written is not waited for. */
    if (is_log_at_its_end(follow, is_absent))
        return labelled_flush(&follow->first);
    if (follow->phase == FOLLOW_DONE && ++follow->log_reasks > LOG_REASKS_MAX) {
        double written = 0;
        if (field_measured(follow->job, "log_bytes", &written))
            talk_line("%" PRId64 " bytes of the output could not be read; see: mgpu logs %" PRIu64,
                (int64_t)written - (int64_t)follow->channels[CHANNEL_LOG].offset, follow->id);
        return 0;
    }
    listen_to_log(follow, LOG_REASK_MS);
    return 0;
}

/* A job that has already ended need not be cancelled. */
static int on_cancel(struct follow *follow, struct error *err)
{
    const struct http_answer *answer = stream_answer(&follow->channels[CHANNEL_CANCEL]);
    return answer->status < 300 || answer->status == 409 ? 0 : client_problem(answer, err);
}

static int on_news(struct follow *follow, struct error *err)
{
    const struct http_answer *answer = stream_answer(&follow->channels[CHANNEL_NEWS]);
    json_t *job = NULL;
    if (answer->status == 200 && follow->phase == FOLLOW_QUEUED)
        job = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    if (job != NULL)
        set_job(follow, job);
    return 0;
}

static const struct {
    int (*on_complete)(struct follow *follow, struct error *err);
    bool is_vital; // its failure ends following; failures of others are only reported
    bool is_printed;
} channel_rows[CHANNELS] = {
    [CHANNEL_LOG] = { on_log, true, true },
    [CHANNEL_WATCH] = { on_watch, true, true },
    [CHANNEL_CANCEL] = { on_cancel, false, true },
    [CHANNEL_NEWS] = { on_news, false, false },
};

static int advance(struct follow *follow, enum channel channel, bool is_readable, struct error *err)
{
    struct stream *stream = &follow->channels[channel];
    struct error here = { 0 };
    if (stream->state == STREAM_IDLE || stream->state == STREAM_COMPLETE)
        return 0;
    int r = stream_advance(stream, is_readable, &here);
    if (r > 0)
        r = channel_rows[channel].on_complete(follow, &here);
    if (r >= 0)
        return 0;
    stream->state = STREAM_IDLE;
    if (channel_rows[channel].is_vital) {
        *err = here;
        return r;
    }
    if (channel_rows[channel].is_printed)
        talk_error("run", &here);
    return 0;
}

/* All output of the ended attempt was received, or cannot be for now. */
static bool is_attempt_read(const struct follow *follow)
{
    if (follow_is_without_output(follow->job, follow->attempt))
        return true; // the requests are answered with that of the next one
    bool is_read = follow->out.is_gone || !stream_is_awaited(&follow->channels[CHANNEL_LOG]);
    bool is_written = !outlet_has_pending(&follow->out) && !outlet_has_pending(&follow->error);
    return is_read && is_written && follow_ranks_are_read(&follow->ranks) &&
           follow_ranks_are_read(&follow->errors);
}

static void begin_next_attempt(struct follow *follow)
{
    bool is_its_output = follow->has_output && follow_is_without_output(follow->job, follow->attempt);
    follow->phase = FOLLOW_QUEUED;
    follow->attempt++;
    follow->requeues += follow->requeues < follow_requeues(follow->job);
    waiting_line_clear(&follow->line);
    if (!follow->call->is_quiet)
        follow_say_requeued(follow->call, follow->id);
    waiting_line_init(&follow->line, follow->call, going_leaves_queued(follow->options->leaver));
    watch(follow);
    if (is_its_output)
        return; // it is being received
    follow->has_output = false;
    follow->log_reasks = 0;
    follow->channels[CHANNEL_LOG].offset = 0;
    forget_ranks(follow);
    if (!follow->out.is_gone)
        listen_to_log(follow, 0);
    listen_to_errors(follow);
}

/* All bytes were received: the answer has ended, or the job has and its log is known to contain no more. */
static bool is_log_read(const struct follow *follow)
{
    return follow->channels[CHANNEL_LOG].state == STREAM_COMPLETE ||
           (field_is_known(follow->job, "log_bytes") && is_output_whole(follow));
}

static bool is_over(const struct follow *follow)
{
    if (follow->is_left || (follow->options->is_until_start && follow->phase != FOLLOW_QUEUED))
        return true;
    bool is_read = is_log_read(follow) && follow_ranks_are_over(&follow->ranks);
    bool is_log_over = follow->out.is_gone || (is_read && !outlet_has_pending(&follow->out));
    bool are_errors_over = follow->error.is_gone ||
                           (follow_ranks_are_over(&follow->errors) && !outlet_has_pending(&follow->error));
    return follow->is_abandoned || (follow->phase == FOLLOW_DONE && is_log_over && are_errors_over);
}

/* One turn: waits for events and lets each log handle its own. */
static int turn(struct follow *follow, int signal_fd, struct error *err)
{
    bool has_output = outlet_has_pending(&follow->out), has_errors = outlet_has_pending(&follow->error);
    int wait_ms =
        timeouts_earlier(waiting_line_wait_ms(&follow->line), timeouts_left_ms(follow->options->timeouts));
    struct pollfd fds[OTHERS + 2 * FOLLOW_RANKS_MAX] = {
        [CHANNELS] = { .fd = signal_fd, .events = POLLIN },
        [CHANNELS + 1] = { .fd = has_output ? STDOUT_FILENO : -1, .events = POLLOUT },
        [CHANNELS + 2] = { .fd = follow->raw.is_set ? STDIN_FILENO : -1, .events = POLLIN },
        [CHANNELS + 3] = { .fd = has_errors ? STDERR_FILENO : -1, .events = POLLOUT },
    };
    for (size_t i = 0; i < CHANNELS; i++) {
        bool is_held = i == CHANNEL_LOG && (has_output || may_become_wide(follow));
        fds[i] = (struct pollfd){ .fd = is_held ? -1 : stream_fd(&follow->channels[i]), .events = POLLIN };
        wait_ms = timeouts_earlier(wait_ms, stream_wait_ms(&follow->channels[i]));
    }
    struct pollfd *rank_fds = &fds[OTHERS], *error_fds = rank_fds + follow->ranks.count;
    size_t count = OTHERS + follow->ranks.count + follow->errors.count;
    wait_ms = timeouts_earlier(wait_ms, follow_ranks_poll(&follow->ranks, has_output, rank_fds));
    wait_ms = timeouts_earlier(
        wait_ms, follow_ranks_poll(&follow->errors, has_errors || may_become_wide(follow), error_fds));
    if (poll(fds, count, wait_ms) < 0 && errno != EINTR)
        return error_set_errno(err, -errno, "cannot wait");
    if (fds[CHANNELS].revents != 0)
        on_signal(follow, signal_fd);
    if (fds[CHANNELS + 1].revents != 0)
        write_output(follow);
    if (fds[CHANNELS + 2].revents != 0)
        on_key(follow);
    if (fds[CHANNELS + 3].revents != 0)
        (void)outlet_write(&follow->error);
    size_t n_ranks = follow->ranks.count, n_errors = follow->errors.count; // later ones: next time
    for (size_t i = 0; i < CHANNELS; i++) {
        int r = advance(follow, (enum channel)i, fds[i].revents != 0, err);
        if (r < 0)
            return r;
    }
    bool is_ended = follow->phase == FOLLOW_DONE || follow->phase == FOLLOW_BETWEEN;
    int r = follow_ranks_advance(&follow->ranks, rank_fds, n_ranks, is_ended, err);
    if (r == 0)
        r = follow_ranks_advance(&follow->errors, error_fds, n_errors, is_ended, err);
    if (r == 0 && follow->phase == FOLLOW_BETWEEN && is_attempt_read(follow))
        begin_next_attempt(follow);
    return r;
}

static void paint(struct follow *follow)
{
    if (follow->phase != FOLLOW_QUEUED || waiting_line_wait_ms(&follow->line) != 0)
        return;
    if (session_is_on_terminal())
        raw_terminal_set_keys(&follow->raw);
    /* The answer to the submit does not contain the position: it is requested before the first line. */
    if (follow->channels[CHANNEL_NEWS].state == STREAM_IDLE) {
        open_channel(follow, CHANNEL_NEWS, "");
        follow->line.next_ms += NEWS_WAIT_MS;
        return;
    }
    if (follow->line.turns > 0 && waiting_line_wants_news(&follow->line))
        open_channel(follow, CHANNEL_NEWS, "");
    waiting_line_paint(&follow->line, follow->job);
}

static int exit_status(const struct follow *follow)
{
    if (follow->going.stops > 0 && (follow->is_abandoned || field_is(follow->job, "ended_by", "cancelled")))
        return EXIT_SIGNAL_BASE + follow->going.first_signal;
    int status = exit_code_of_job(follow->job);
    return status == EXIT_OK && follow->is_output_lost ? EXIT_SELF : status;
}

static void follow_clear(struct follow *follow)
{
    raw_terminal_restore(&follow->raw);
    for (size_t i = 0; i < CHANNELS; i++)
        stream_clear(&follow->channels[i]);
    follow_ranks_clear(&follow->ranks);
    follow_ranks_clear(&follow->errors);
    labelled_clear(&follow->first);
    outlet_clear(&follow->out);
    outlet_clear(&follow->error);
    json_decref(follow->job);
}

int follow_job(struct call *call, const json_t *job, const struct follow_options *options, struct error *err)
{
    bool needs_reader = !leaving_ignore_unread();
    sigset_t signals;
    going_signals(&signals, options->passes_signals);
    _cleanup_close_ int signal_fd = leaving_signals_open(&signals, err);
    if (signal_fd < 0)
        return signal_fd;
    _cleanup_(follow_clear) struct follow follow = { .call = call,
        .job = json_deep_copy(job),
        .options = options,
        .id = (uint64_t)field_integer(job, "id", 0),
        .needs_reader = needs_reader,
        .requeues = follow_requeues(job) };
    follow.going.leaver = options->leaver;
    follow.attempt = field_integer(job, "attempt", 0) > 0 ? field_integer(job, "attempt", 0) : 1;
    (void)snprintf(follow.idle_level, sizeof(follow.idle_level), "none");
    forget_ranks(&follow);
    follow.first = (struct labelled){ .label = "0", .put = take_output, .arg = &follow };
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    follow.out.fd = STDOUT_FILENO;
    follow.out.filter.mode = foreign_mode(call, NULL, job, STDOUT_FILENO, false);
    follow.error.fd = STDERR_FILENO;
    follow.error.filter.mode = foreign_mode(call, NULL, job, STDERR_FILENO, false);
    waiting_line_init(&follow.line, call, going_leaves_queued(options->leaver));
    follow.channels[CHANNEL_LOG].offset = options->output_begin;
    watch(&follow);
    if (!options->is_until_start)
        listen_to_log(&follow, 0);
    listen_to_ranks(&follow);
    while (!is_over(&follow)) {
        int r = turn(&follow, signal_fd, err);
        if (r == 0)
            r = timeouts_check(options->timeouts, err);
        if (r < 0) {
            waiting_line_clear(&follow.line);
            if (r == -EPERM) // the output belongs to another user
                return r;
            return error_hint(err, "the job continues: mgpu logs -f %" PRIu64, follow.id);
        }
        paint(&follow);
    }
    if (follow.is_left) {
        _cleanup_free_ char *path = xasprintf("%" PRIu64, follow.id);
        raw_terminal_restore(&follow.raw);
        session_say_detached(call, path, is_waiting(&follow));
        return EXIT_OK;
    }
    bool is_own_stop = follow.going.stops > 0 && field_is(follow.job, "ended_by", "cancelled");
    bool is_handed_over = options->is_until_start && field_is_known(follow.job, "started_at") && !is_own_stop;
    if (is_handed_over) {
        *options->ret_job = json_incref(follow.job);
        return EXIT_OK;
    }
    if (!is_own_stop)
        follow_report(call, "run", follow.job);
    else if (!call->is_quiet && follow.going.first_signal == SIGINT)
        talk_line("job %" PRIu64 " was cancelled", follow.id);
    return exit_status(&follow);
}

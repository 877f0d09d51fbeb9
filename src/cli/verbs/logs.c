/* SPDX-License-Identifier: MIT */
/*
 * mgpu logs: the output of jobs. The output of one job is printed unchanged; with several jobs each line is
 * prefixed with its job's number, and -f follows them in parallel. The number of nodes of a job is unknown
 * until it starts, so mgpu waits for the start first.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/stream.h"
#include "cli/follow/follow.h"
#include "cli/follow/foreign.h"
#include "cli/follow/log_elements.h"
#include "cli/follow/log_tail.h"
#include "cli/follow/node_away.h"
#include "cli/follow/wait_shown.h"
#include "cli/options/selector.h"
#include "cli/show/job_columns.h"
#include "cli/show/job_end.h"
#include "cli/term/labelled.h"
#include "cli/verbs/verbs.h"
#include "job/job_nodes.h"

#define FOLLOWED_MAX    64U
#define REASK_MS        250
#define READ_PATIENT_MS 10000
#define LINES_MAX       1000000000

struct logs_options {
    bool is_follow, is_strip, is_raw, has_lines, has_rank;
    int64_t lines, rank;
};

static struct logs_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_lines(void *target, const char *value, struct error *err)
{
    options_of(target)->has_lines = true;
    return parse_integer(value, "-n", 0, LINES_MAX, &options_of(target)->lines, err);
}

static int set_rank(void *target, const char *value, struct error *err)
{
    options_of(target)->has_rank = true;
    return parse_integer(value, "--rank", 0, JOB_NODES_MAX - 1, &options_of(target)->rank, err);
}

static const struct option_row follow_rows[] = {
    { 'f', "follow", NULL, "continue until the job ends",
        OPTION_INNER(flag, struct logs_options, is_follow) },
    { 0 },
};

static const struct option_row rows[] = {
    { 'n', "lines", "N", "only the last N lines, and everything after them", set_lines },
    { 0, "rank", "N", "for a job on several nodes: only the output of rank N, from 0", set_rank },
    { 0, "raw", NULL, "every byte, even of terminal output and of other users' jobs",
        OPTION_INNER(flag, struct logs_options, is_raw) },
    { 0, "strip", NULL, "remove colours and other terminal control sequences",
        OPTION_INNER(flag, struct logs_options, is_strip) },
    { 0 },
};

struct log_list {
    struct log *items;
    size_t count; // at most FOLLOWED_MAX of the followed ones
};

/* The output of one job, or of one rank, that is being read. */
struct log {
    const char *job;
    size_t rank;
    bool is_error; // the log of standard error
    struct call *call;
    struct log_list *list; // the list that contains it
    struct stream stream;
    struct foreign filter;
    struct labelled lines;  // with several
    bool is_one_of_several; // jobs
    bool is_awaited;        // until the job has started, the job itself is requested
    bool is_prefixed;
    bool is_last; // the present request was sent when the job had ended
    bool is_over;
    bool is_absence_shown; // that its node is unreachable has been reported
};

static int write_out(void *arg, const void *bytes, size_t length)
{
    int r = write_all(STDOUT_FILENO, bytes, length);
    return r < 0 ? r : 0;
}

static int write_error(void *arg, const void *bytes, size_t length)
{
    int r = write_all(STDERR_FILENO, bytes, length);
    return r < 0 ? r : 0;
}

static int log_fd(const struct log *log)
{
    return log->is_error ? STDERR_FILENO : STDOUT_FILENO;
}

static int take_bytes(void *target, const void *bytes, size_t length)
{
    struct log *log = target;
    _cleanup_buffer_ struct buffer kept = { 0 };
    foreign_filter(&log->filter, &kept, &bytes, &length);
    if (length == 0)
        return 0;
    return log->is_prefixed ? labelled_take(&log->lines, bytes, length) : log->lines.put(NULL, bytes, length);
}

static char *log_path(const struct log *log, bool is_follow)
{
    return xasprintf(API_PATH "/jobs/%s/log?%srank=%zu%s", log->job, is_follow ? "follow=1&wait=1&" : "",
        log->rank, log->is_error ? "&stream=stderr" : "");
}

static void ask(struct log *log, int delay_ms)
{
    const struct logs_options *options = log->call->options;
    _cleanup_free_ char *path = log_path(log, options->is_follow);
    stream_start(&log->stream, &log->call->client, path);
    log->stream.retry_ms = delay_ms > 0 ? clock_boot_ms() + delay_ms : 0;
}

static void on_unavailable(void *target)
{
    struct log *log = target;
    if (!log->is_absence_shown && !log->call->is_quiet)
        log->is_absence_shown = node_away_report(log->call, log->job, log->rank);
}

/* Output for a terminal is converted to plain text for other destinations; if it is another user's, also for
 * the caller's terminal. */
static enum foreign_mode find_mode(const struct log *log)
{
    const struct logs_options *options = log->call->options;
    if (options->is_raw)
        return FOREIGN_PASS;
    if (options->is_strip)
        return FOREIGN_STRIP;
    struct error err = { 0 };
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", log->job);
    int r = client_get(&log->call->client, path, &job, &err);
    if (isatty(log_fd(log)) == 1)
        return foreign_mode(log->call, log->job, job, log_fd(log), false);
    return r == 0 && json_is_true(json_object_get(job, "tty")) ? FOREIGN_STRIP : FOREIGN_PASS;
}

static void await_start(struct log *log)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/wait?states=running,done", log->job);
    stream_start(&log->stream, &log->call->client, path);
}

static int start(struct log *log, struct error *err)
{
    const struct logs_options *options = log->call->options;
    if (log->is_awaited) {
        await_start(log);
        return 0;
    }
    log->filter.mode = find_mode(log);
    if (options->has_lines) {
        _cleanup_free_ char *path = log_path(log, false);
        int r = log_tail_find(&log->call->client, path, (uint64_t)options->lines, &log->stream.offset, err);
        if (r < 0)
            return r;
    }
    ask(log, 0);
    log->stream.sink = take_bytes;
    log->stream.sink_target = log;
    log->stream.on_unavailable = on_unavailable;
    log->stream.target = log;
    return 0;
}

/* A log that may be created later than the first one. */
static bool is_further(const struct log *log)
{
    return log->rank > 0 || log->is_error;
}

/* Requests the job's object, to determine whether the end of the log is the end of the job. */
static int finish_follow(struct log *log, bool is_absent, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", log->job);
    int r = client_get(&log->call->client, path, &job, err);
    if (r < 0)
        return r;
    /* "None" may have been the answer just before a rank was reported. */
    bool is_too_early = is_absent && is_further(log) && !log->is_last;
    if (!job_is_done(job) || is_too_early) {
        ask(log, REASK_MS);
        log->is_last = job_is_done(job);
        return 0;
    }
    log->is_over = true;
    r = labelled_flush(&log->lines);
    if (!is_further(log) && isatty(STDERR_FILENO) == 1 && !log->call->is_quiet)
        follow_report(log->call, "logs", job);
    return r;
}

/* The label of lines: the job with several jobs, the rank with several nodes. */
static void set_label(struct log *log, size_t ranks)
{
    char *label = log->lines.label;
    log->is_prefixed = log->is_one_of_several || ranks > 1;
    if (ranks > 1 && log->is_one_of_several)
        (void)snprintf(label, sizeof(log->lines.label), "%.40s %zu", log->job, log->rank);
    else if (ranks > 1)
        (void)snprintf(label, sizeof(log->lines.label), "%zu", log->rank);
    else
        (void)snprintf(label, sizeof(log->lines.label), "%.40s", log->job);
}

/* The logs of a job: one of each rank, followed by those of standard error if they are separate. */
struct job_logs {
    size_t ranks, first; // the lowest rank shown
    bool is_split;
};

static struct job_logs logs_of(const json_t *job)
{
    size_t ranks = json_array_size(json_object_get(job, "ranks"));
    return (struct job_logs){ .ranks = ranks > 0 ? ranks : 1,
        .is_split = json_is_true(json_object_get(job, "split_log")) };
}

static size_t logs_count(const struct job_logs *logs)
{
    return logs->is_split ? 2 * logs->ranks : logs->ranks;
}

/* Adds log number `i` to the end of the list, which has space; the other fields are copied from `like`. */
static struct log *add_log(
    struct log_list *list, const struct log *like, const struct job_logs *logs, size_t i)
{
    bool is_error = i >= logs->ranks;
    struct log *log = &list->items[list->count++];
    *log = (struct log){ .job = like->job,
        .rank = logs->first + i % logs->ranks,
        .is_error = is_error,
        .call = like->call,
        .list = list,
        .is_one_of_several = like->is_one_of_several,
        .is_awaited = like->is_awaited && i == 0,
        .lines = { .put = is_error ? write_error : write_out } };
    set_label(log, logs->ranks);
    return log;
}

static int check_count(size_t count, struct error *err)
{
    if (count <= FOLLOWED_MAX)
        return 0;
    return error_set(err, -E2BIG, "-f: %zu outputs are more than %u at once", count, FOLLOWED_MAX);
}

/* Now the number of nodes is known. */
static int on_start(struct log *log, struct error *err)
{
    const struct http_answer *answer = stream_answer(&log->stream);
    _cleanup_json_ json_t *job = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    struct log_list *list = log->list;
    const struct job_logs logs = logs_of(job);
    size_t count = logs_count(&logs);
    int r = check_count(list->count + count - 1, err);
    if (r < 0)
        return r;
    log->is_awaited = false;
    set_label(log, logs.ranks);
    for (size_t i = 1; r == 0 && i < count; i++)
        r = start(add_log(list, log, &logs, i), err);
    return r == 0 ? start(log, err) : r;
}

static int on_complete(struct log *log, struct error *err)
{
    const struct logs_options *options = log->call->options;
    const struct http_answer *answer = stream_answer(&log->stream);
    if (log->is_awaited && answer->status == 200)
        return on_start(log, err);
    bool is_good = answer->status == 200 || answer->status == 206;
    bool is_past_end = answer->status == 416; // for a range that begins where the log ends
    bool is_late = answer->status == 404 && options->is_follow && (log->stream.offset > 0 || is_further(log));
    bool is_without = answer->status == 404 && log->is_error; // of a job that failed before its start
    if (!is_good && !is_past_end && !is_late && !is_without)
        return client_problem(answer, err);
    if (options->is_follow)
        return finish_follow(log, answer->status == 404, err);
    log->is_over = true;
    return labelled_flush(&log->lines);
}

/* Ends like any filter whose reader has left, without a message. */
static int fail_unread(struct error *err)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
    return error_set(err, -EPIPE, "the reader of the output has closed it");
}

static int advance(struct log *log, bool is_readable, struct error *err)
{
    int r = log->is_over ? 0 : stream_advance(&log->stream, is_readable, err);
    if (r > 0)
        r = on_complete(log, err);
    if (r == -EPIPE)
        return fail_unread(err);
    if (r < 0 && err->code == 0)
        return error_set_errno(err, r, "cannot write the output");
    return r;
}

/* Reads all in parallel until they have ended. */
static int run_logs(struct log_list *list, struct error *err)
{
    for (;;) {
        struct pollfd fds[FOLLOWED_MAX + 1];
        int wait_ms = -1;
        bool is_over = true;
        size_t count = 0;
        for (; count < list->count; count++) { // a job that has started may add others
            struct log *log = &list->items[count];
            int r = advance(log, false, err);
            if (r < 0)
                return r;
            int here = log->is_over ? -1 : stream_wait_ms(&log->stream);
            wait_ms = here >= 0 && (wait_ms < 0 || here < wait_ms) ? here : wait_ms;
            fds[count] = (struct pollfd){
                .fd = log->is_over ? -1 : stream_fd(&log->stream),
                .events = POLLIN,
            };
            is_over &= log->is_over;
        }
        if (is_over)
            return 0;
        fds[count] = (struct pollfd){ .fd = STDOUT_FILENO }; // POLLERR only: for a pipe whose reader has left
        if (poll(fds, (nfds_t)count + 1, wait_ms) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        if ((fds[count].revents & POLLERR) != 0)
            return fail_unread(err);
        for (size_t i = 0; i < count; i++) {
            int r = fds[i].revents == 0 ? 0 : advance(&list->items[i], true, err);
            if (r < 0)
                return r;
        }
    }
}

static void clear(struct log *log)
{
    stream_clear(&log->stream);
    labelled_clear(&log->lines);
}

/* The job's logs; that of one node if the number is unknown, or if one is requested. *ret_is_awaited: the
 * number will be known when the job has started. */
static int find_logs(
    struct call *call, const char *job, struct job_logs *ret, bool *ret_is_awaited, struct error *err)
{
    const struct logs_options *options = call->options;
    _cleanup_json_ json_t *object = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", job);
    *ret_is_awaited = false;
    int r = client_get(&call->client, path, &object, err);
    if (r < 0)
        return r;
    *ret = logs_of(object);
    if (options->has_rank) {
        ret->ranks = 1;
        ret->first = (size_t)options->rank;
        return 0;
    }
    bool is_element = field_integer(object, "array_job", 0) > 0;
    if (is_element && job_is_done(object) && !field_is_known(object, "log") &&
        !field_is_known(object, "started_at")) {
        (void)error_set(err, -ENOENT, "job %s has no output: it never started", job);
        return error_hint(err, "mgpu show %s shows why", job);
    }
    size_t ranks = json_array_size(json_object_get(object, "ranks"));
    int64_t asked = job_is_done(object) ? 1 : field_integer(object, "nodes", 1);
    bool has_begun = field_is_known(object, "started_at") || field_is_known(object, "array");
    bool may_be_wide = field_integer(object, "gpus", 1) > 1;
    if (ranks == 0 && asked > 1 && options->is_follow)
        ranks = (size_t)asked;
    if (ranks == 0 && !options->is_follow &&
        !has_begun) // what can be read is the output of its earlier attempt
        ranks = (size_t)field_integer(json_object_get(object, "earlier"), "ranks", 0);
    bool is_in_array = strchr(job, '.') != NULL && json_is_string(json_object_get(object, "array"));
    *ret_is_awaited = options->is_follow && !job_is_done(object) &&
                      (is_in_array || (ranks == 0 && may_be_wide && !has_begun));
    ret->ranks = ranks > 0 ? ranks : 1;
    return 0;
}

/* Reports missing permission to read the output before the job starts. */
static int check_right(struct call *call, const char *job, struct error *err)
{
    struct error none_yet = { 0 };
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/log", job);
    int r = client_get(&call->client, path, NULL, &none_yet);
    if (r != -EPERM && r != -EACCES)
        return 0;
    *err = none_yet;
    return r;
}

static int add_job(
    struct call *call, const char *job, bool is_one_of_several, struct log_list *list, struct error *err)
{
    const struct logs_options *options = call->options;
    struct job_logs logs;
    bool is_awaited;
    int r = find_logs(call, job, &logs, &is_awaited, err);
    if (r == 0 && is_awaited)
        r = check_right(call, job, err);
    if (r == 0 && options->is_follow)
        r = check_count(list->count + logs_count(&logs), err);
    if (r < 0)
        return r;
    const struct log like = {
        .job = job, .call = call, .is_one_of_several = is_one_of_several, .is_awaited = is_awaited
    };
    size_t count = is_awaited ? 1 : logs_count(&logs); // on_start adds the others
    size_t room = options->is_follow ? FOLLOWED_MAX : list->count + count;
    list->items = xreallocarray(list->items, room, sizeof(*list->items));
    for (size_t i = 0; i < count; i++)
        (void)add_log(list, &like, &logs, i);
    return 0;
}

/* On a terminal, shows the line of `run` while it waits. */
static int await_shown(struct call *call, const char *job, struct error *err)
{
    _cleanup_json_ json_t *begun = NULL;
    int r = check_right(call, job, err);
    return r < 0 ? r : wait_shown(call, job, "running,done", JOB_END_FOR_EVER, &begun, err);
}

/* In parallel when they are followed, else one after the other. */
static int print_list(struct log_list *list, bool is_follow, struct error *err)
{
    int r = 0;
    for (size_t i = 0, count = list->count; r == 0 && i < count; i++) {
        r = start(&list->items[i], err);
        if (r == 0 && !is_follow)
            r = run_logs(&(struct log_list){ &list->items[i], 1 }, err);
    }
    return r == 0 && is_follow ? run_logs(list, err) : r;
}

/* An element that was cancelled before it started, as a job or in its array, is skipped unless it is
 * named. */
static int add_jobs(struct call *call, const struct strings *named, const struct strings *jobs,
    bool is_labelled, struct log_list *list, struct error *err)
{
    bool is_found = false;
    for (size_t i = 0; i < jobs->count; i++) {
        struct error missing = { 0 };
        int r = add_job(call, jobs->items[i], is_labelled, list, &missing);
        bool is_passed = r == -ENOENT && !strings_have(named, jobs->items[i]);
        is_found |= r == 0;
        if (r < 0 && (!is_passed || (i + 1 == jobs->count && !is_found))) {
            *err = missing;
            return r;
        }
    }
    return 0;
}

static int print_logs(struct call *call, const struct strings *named, const struct strings *jobs,
    bool is_labelled, struct error *err)
{
    const struct logs_options *options = call->options;
    struct log_list list = { 0 };
    bool is_shown = options->is_follow && jobs->count == 1 && isatty(STDERR_FILENO) == 1 && !call->is_quiet;
    int r = is_shown ? await_shown(call, jobs->items[0], err) : 0;
    if (r == 0)
        r = add_jobs(call, named, jobs, is_labelled, &list, err);
    if (r == 0)
        r = print_list(&list, options->is_follow, err);
    for (size_t i = 0; i < list.count; i++)
        clear(&list.items[i]);
    free(list.items);
    return r;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct logs_options *options = call->options;
    _cleanup_strings_ struct strings named = { 0 }, jobs = { 0 };
    bool has_array = false;
    if (call->is_json) {
        (void)error_set(err, -EINVAL, "the output of a job is not JSON: --json cannot be used here");
        return error_hint(
            err, "for the job itself: mgpu show --json%s%.60s", argc > 0 ? " " : "", argc > 0 ? argv[0] : "");
    }
    int r = selector_resolve(call, argc, argv, &named, err);
    if (r == 0)
        r = log_elements(&call->client, &named, options->is_follow, &jobs, &has_array, err);
    if (r < 0)
        return r;
    call->client.timeout_ms = options->is_follow ? CLIENT_PATIENT_MS : READ_PATIENT_MS;
    if (options->is_follow && jobs.count > FOLLOWED_MAX)
        return error_set(err, -E2BIG, "-f: %zu jobs are more than %u at once", jobs.count, FOLLOWED_MAX);
    return print_logs(call, &named, &jobs, has_array || jobs.count > 1, err);
}

static int run_follow(struct call *call, int argc, char **argv, struct error *err)
{
    ((struct logs_options *)call->options)->is_follow = true;
    return run(call, argc, argv, err);
}

const struct command command_logs = {
    .name = "logs",
    .usage = "[OPTIONS] JOB...",
    .help = "Print the output of jobs so far; -f continues until they end",
    .detail = "The output is printed unchanged. --strip removes terminal control sequences, for logs of "
              "users you do\n"
              "not trust. Of an array, the outputs of its elements are printed, each line with its element.",
    .tables = { follow_rows, rows },
    .options_size = sizeof(struct logs_options),
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .run = run,
};

const struct command command_follow = {
    .name = "follow",
    .usage = "[OPTIONS] JOB...",
    .help = "Short for logs -f",
    .tables = { rows },
    .options_size = sizeof(struct logs_options),
    .takes_jobs = true,
    .job_name_use = JOB_NAME_NEWEST,
    .is_hidden = true,
    .run = run_follow,
};
